#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <openelm/engine.h>
#include <openelm/generation.h>
#include <openelm/tokenizer.h>

namespace openelm {

/// Most sequences that are generated together.
inline constexpr std::int32_t kMaxParallel = 256;

struct BatchOptions {
  std::int32_t context = 0;  ///< as in SessionOptions
  KvType kv_type = KvType::f16;
  /// Sequences generated together, 1 to kMaxParallel; 0: chosen from the threads and the memory.
  std::int32_t parallel = 0;
  /// Bytes for keys and values, rounded up to one full context at least; 0: what the sequences
  /// need at full context, but no more than a quarter of the available memory.
  std::uint64_t kv_bytes = 0;
};

struct BatchRequest {
  std::uint64_t number = 0;  ///< the caller's, given back with the answer
  std::vector<TokenId> prompt;
  GenerationOptions options;
  bool at_start = false;  ///< the generated text begins a text (see StreamDecoder)
};

struct BatchAnswer {
  std::uint64_t number = 0;
  GenerationResult result;           ///< without timings
  std::optional<std::string> error;  ///< what is wrong with the request; then there is no result
};

struct BatchStatistics {
  std::uint64_t answers = 0;  ///< those with an error, too
  std::uint64_t errors = 0;
  std::uint64_t prompt_tokens = 0;     ///< of the requests begun
  std::uint64_t evaluated_tokens = 0;  ///< of the prompts; the others were shared
  std::uint64_t generated_tokens = 0;
  std::uint64_t passes = 0;  ///< forward passes
  /// Passes in which every slot generated, and how long they took.
  std::uint64_t full_pass_tokens = 0;
  double full_pass_seconds = 0;
  std::int32_t parallel = 0;   ///< slots
  std::uint64_t kv_bytes = 0;  ///< reserved
  bool ended_early = false;    ///< by the cancel flag or by `answer`
};

/// Where requests come from and answers go to; all called on the thread that runs the batch.
struct BatchHooks {
  enum class Supply { request, none_yet, end };
  /// Gives the next request. Waits for one only if `wait`, and then not for ever: the cancel flag
  /// is looked at in between.
  std::function<Supply(BatchRequest& request, bool wait)> next;
  /// Takes an answer, as soon as it is there: in any order. Return false to end the batch.
  std::function<bool(BatchAnswer answer)> answer;
  /// Told of the progress after each pass. May be empty.
  std::function<void(const BatchStatistics&)> progress;
};

/// Generates for many prompts together: up to `parallel` sequences go through the model in one
/// pass, a new one takes the place of one that has ended, and prompts are evaluated in pieces
/// beside the generating ones. A beginning of 32 or more tokens that prompts have in common is
/// evaluated once. Requests are begun in the order they come in; where memory for keys and values
/// is short, they wait.
///
/// Each answer is what generate() gives for that request alone, whatever else is in the batch.
/// `tokenizer` may be null, as there. Throws UsageError for options out of range, Error when memory
/// does not suffice, and whatever a hook throws.
BatchStatistics generate_batch(const std::shared_ptr<const Engine>& engine,
                               const Tokenizer* tokenizer, const BatchOptions& options,
                               const BatchHooks& hooks, const std::atomic<bool>* cancel = nullptr);

}  // namespace openelm
