#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <openelm/generation.h>

namespace openelm::cli {

/// What is told about a generation besides its text, as JSON and for people.
struct GenerationReport {
  std::size_t prompt_tokens = 0;
  std::size_t evaluated_tokens = 0;  ///< of the prompt, those that were not in the cache already
  double load_seconds = 0;
  std::uint64_t seed = 0;
  int threads = 0;
  const char* isa = "";
};

/// {"prompt_tokens", "completion_tokens"}
nlohmann::ordered_json usage_json(const GenerationReport& report, const GenerationResult& result);

/// {"load_ms", "prompt_ms", "generate_ms", "prompt_tokens_per_second", "tokens_per_second"}
nlohmann::ordered_json timings_json(const GenerationReport& report, const GenerationResult& result);

/// [{"token", "piece", "logprob", "top_logprobs": [{"token", "piece", "logprob"}]}]; pieces only
/// with a tokenizer.
nlohmann::ordered_json logprobs_json(const std::vector<TokenLogprobs>& logprobs,
                                     const Tokenizer* tokenizer);

/// Prints the timings to stderr, a line each for prompt, generation, loading and the set-up.
void print_stats(const GenerationReport& report, const GenerationResult& result);

}  // namespace openelm::cli
