#include <algorithm>

#include <openelm/batch.h>
#include <openelm/error.h>

#include "base/available_memory.h"
#include "runtime/checked_context.h"
#include "runtime/scheduler.h"
#include "runtime/sequence_pool.h"

namespace openelm {
namespace {

/// Tokens of one pass: enough that the matrix products are at their best.
constexpr std::int32_t kRowsPerPass = 512;

/// Of more sequences the weights are read for, the less each costs, until arithmetic is the limit;
/// from some dozens on, more bring little. More threads share the rows.
std::int32_t default_parallel(int threads) { return std::clamp(8 * threads, 32, 64); }

/// Positions that a sequence is taken to need when the memory decides how many there are.
constexpr std::int32_t kUsualLength = 512;

}  // namespace

BatchStatistics generate_batch(const std::shared_ptr<const Engine>& engine,
                               const Tokenizer* tokenizer, const BatchOptions& options,
                               const BatchHooks& hooks, const std::atomic<bool>* cancel) {
  const ModelConfig& config = engine->config();
  const std::int32_t context = checked_context(config, options.context);
  if (options.parallel < 0 || options.parallel > kMaxParallel) {
    throw UsageError("parallel: expected 1 to " + std::to_string(kMaxParallel) + ", got " +
                     std::to_string(options.parallel));
  }
  std::int32_t parallel = options.parallel;
  if (parallel == 0) parallel = default_parallel(engine->threads());
  const std::int32_t context_pages = kv_pages(context);
  const std::uint64_t page_bytes = kv_bytes(config, options.kv_type, KvCache::kPageSize);
  const std::uint64_t limit = options.kv_bytes > 0 ? options.kv_bytes : available_memory() / 4;
  const auto affordable = static_cast<std::int64_t>(limit / page_bytes);
  const auto n_pages = static_cast<std::int32_t>(
      std::clamp<std::int64_t>(affordable, context_pages, std::int64_t{parallel} * context_pages));
  if (options.parallel == 0) {
    parallel = std::clamp(n_pages / kv_pages(std::min(context, kUsualLength)), 1, parallel);
  }
  SequencePool pool(engine, {.context = context,
                             .kv_type = options.kv_type,
                             .n_pages = n_pages,
                             .max_rows = kRowsPerPass});
  return Scheduler(pool, tokenizer, options.kv_type, parallel, hooks, cancel).run();
}

}  // namespace openelm
