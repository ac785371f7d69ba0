#include "runtime/benchmark.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <random>
#include <span>

#include <openelm/error.h>

#include "runtime/engine_impl.h"
#include "runtime/sequence_pool.h"

namespace openelm {
namespace {

using Clock = std::chrono::steady_clock;

/// Tokens of one pass, as in a session.
constexpr std::int32_t kMaxRows = 512;

std::vector<TokenId> random_tokens(std::int32_t count, std::int32_t vocab_size) {
  std::mt19937 random;
  std::uniform_int_distribution<TokenId> any(0, vocab_size - 1);
  std::vector<TokenId> tokens(static_cast<std::size_t>(count));
  std::generate(tokens.begin(), tokens.end(), [&] { return any(random); });
  return tokens;
}

/// Weights read by one pass: an embedding that is not the head too is only looked up.
std::uint64_t weight_bytes_per_pass(const Engine& engine) {
  const Weights& weights = engine.impl().model.weights;
  return weights.bytes() - (engine.config().tied_head ? 0 : weights.embedding.bytes());
}

std::uint64_t kv_bytes_per_position(const Engine& engine, KvType kv_type) {
  return static_cast<std::uint64_t>(engine.config().kv_bytes_per_token(kv_type));
}

std::uint64_t bytes_read(const Engine& engine, const BenchmarkCase& benchmark, KvType kv_type) {
  const std::uint64_t weights = weight_bytes_per_pass(engine);
  const auto batch = static_cast<std::uint64_t>(benchmark.batch);
  if (benchmark.n_prompt > 0) {
    const std::uint64_t rows = batch * static_cast<std::uint64_t>(benchmark.n_prompt);
    return weights * ((rows + kMaxRows - 1) / kMaxRows);
  }
  const auto n = static_cast<std::uint64_t>(benchmark.n_gen);
  const auto depth = static_cast<std::uint64_t>(benchmark.depth);
  // Token i (from 1) attends to depth + i positions, its own included.
  const std::uint64_t positions = n * depth + n * (n + 1) / 2;
  return weights * n + kv_bytes_per_position(engine, kv_type) * positions * batch;
}

/// The sequences of a case, and how they are brought to its depth and on from there.
class Sequences {
 public:
  Sequences(const std::shared_ptr<const Engine>& engine, const BenchmarkCase& benchmark,
            KvType kv_type, const std::atomic<bool>* cancel)
      : pool_(engine, {.context = benchmark.length(),
                       .kv_type = kv_type,
                       .n_pages = benchmark.batch * kv_pages(benchmark.length()),
                       .max_rows = kMaxRows}),
        cancel_(cancel) {
    for (std::int32_t i = 0; i < benchmark.batch; ++i) sequences_.push_back(pool_.add());
  }

  void rewind(std::int32_t length) {
    for (const std::int32_t sequence : sequences_) pool_.rewind(sequence, length);
  }

  /// Appends the tokens to every sequence; only the last ones' logits are computed.
  void evaluate(std::span<const TokenId> tokens) {
    const auto last = static_cast<std::int32_t>(tokens.size()) - 1;
    std::vector<SequencePool::Work> work;
    for (const std::int32_t s : sequences_) work.push_back({s, tokens, {&last, 1}});
    pool_.evaluate(
        work, [](std::size_t, std::int32_t, std::span<const float>) {}, cancel_);
  }

 private:
  SequencePool pool_;
  std::vector<std::int32_t> sequences_;
  const std::atomic<bool>* cancel_;
};

}  // namespace

std::string BenchmarkCase::name() const {
  std::string text = n_prompt > 0 ? "pp" + std::to_string(n_prompt) : "tg" + std::to_string(n_gen);
  if (depth > 0) text += "@" + std::to_string(depth);
  return text;
}

double BenchmarkResult::median() const {
  std::vector<double> sorted = tokens_per_second;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double BenchmarkResult::min() const {
  return *std::min_element(tokens_per_second.begin(), tokens_per_second.end());
}

double BenchmarkResult::max() const {
  return *std::max_element(tokens_per_second.begin(), tokens_per_second.end());
}

double BenchmarkResult::bytes_per_second() const {
  return static_cast<double>(bytes_read) / static_cast<double>(tokens) * median();
}

std::uint64_t bytes_per_step(const Engine& engine, std::int32_t depth, std::int32_t batch,
                             KvType kv_type) {
  const auto positions =
      (static_cast<std::uint64_t>(depth) + 1) * static_cast<std::uint64_t>(batch);
  return weight_bytes_per_pass(engine) + kv_bytes_per_position(engine, kv_type) * positions;
}

BenchmarkResult run_benchmark(const std::shared_ptr<const Engine>& engine,
                              const BenchmarkCase& benchmark, std::int32_t repetitions,
                              KvType kv_type, const std::atomic<bool>* cancel) {
  const ModelConfig& config = engine->config();
  const std::int32_t count = benchmark.n_prompt + benchmark.n_gen;
  if (std::int64_t{benchmark.depth} + count > config.max_context) {
    throw UsageError(benchmark.name() + ": " + std::to_string(count) + " tokens at depth " +
                     std::to_string(benchmark.depth) + " do not fit the model's context of " +
                     std::to_string(config.max_context));
  }
  Sequences sequences(engine, benchmark, kv_type, cancel);
  const std::vector<TokenId> tokens = random_tokens(benchmark.length(), config.vocab_size);
  const std::span<const TokenId> all(tokens);
  const auto depth = static_cast<std::size_t>(benchmark.depth);
  if (depth > 0) sequences.evaluate(all.first(depth));

  const auto run_once = [&] {
    sequences.rewind(benchmark.depth);
    if (benchmark.n_prompt > 0) {
      sequences.evaluate(all.subspan(depth));
    } else {
      for (std::size_t i = depth; i < all.size(); ++i) sequences.evaluate(all.subspan(i, 1));
    }
  };
  run_once();  // brings caches, pages and clock up

  BenchmarkResult result;
  result.tokens = std::int64_t{count} * benchmark.batch;
  result.bytes_read = bytes_read(*engine, benchmark, kv_type);
  for (std::int32_t r = 0; r < repetitions; ++r) {
    const Clock::time_point start = Clock::now();
    run_once();
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    result.tokens_per_second.push_back(static_cast<double>(result.tokens) / elapsed.count());
  }
  return result;
}

}  // namespace openelm
