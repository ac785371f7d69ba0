#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <openelm/engine.h>

namespace openelm {

/// What is timed: a prompt of `n_prompt` tokens, or `n_gen` single tokens, behind `depth` others,
/// in each of `batch` sequences together. Exactly one of n_prompt and n_gen is not zero.
struct BenchmarkCase {
  std::int32_t n_prompt = 0;
  std::int32_t n_gen = 0;
  std::int32_t depth = 0;
  std::int32_t batch = 1;

  /// Tokens that each sequence holds in the end.
  std::int32_t length() const noexcept { return depth + n_prompt + n_gen; }
  /// As llama-bench writes them: "pp512", "tg128", "tg64@1536".
  std::string name() const;
};

struct BenchmarkResult {
  std::vector<double> tokens_per_second;  ///< one a repetition, in the order measured
  /// Weights (and, token by token, keys and values) that one repetition has to read at least.
  std::uint64_t bytes_read = 0;
  std::int64_t tokens = 0;  ///< evaluated in one repetition, of all sequences

  double median() const;
  double min() const;
  double max() const;
  /// Bytes a second read at the median speed.
  double bytes_per_second() const;
};

/// Runs the case once to warm up and then `repetitions` times, on random tokens. Throws UsageError
/// when depth and tokens do not fit the model's context, Interrupted when `cancel` became true.
BenchmarkResult run_benchmark(const std::shared_ptr<const Engine>& engine,
                              const BenchmarkCase& benchmark, std::int32_t repetitions,
                              KvType kv_type, const std::atomic<bool>* cancel);

/// Bytes that a pass of one token behind `depth` others, in each of `batch` sequences, reads at
/// least: weights once, keys and values of all.
std::uint64_t bytes_per_step(const Engine& engine, std::int32_t depth, std::int32_t batch,
                             KvType kv_type);

struct ReadBandwidth {
  std::uint64_t bytes = 0;  ///< of the set that was read
  double bytes_per_second = 0;
};

/// How fast the engine's threads together read at best: the bound that generation runs against. The
/// set is as large as what one step reads, so that the caches hold as much of the one as of the
/// other; but where they can hold little of either, no larger than that takes.
ReadBandwidth measure_read_bandwidth(const Engine& engine, std::uint64_t bytes_per_step);

}  // namespace openelm
