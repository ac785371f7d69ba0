#include "cli/generation_report.h"

#include <iostream>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "base/utf8.h"
#include "cli/format.h"

namespace openelm::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMilliseconds = 1000;

double prompt_speed(const GenerationReport& report, const GenerationResult& result) {
  return per_second(static_cast<double>(report.evaluated_tokens), result.prompt_seconds);
}

double generation_speed(const GenerationResult& result) {
  return per_second(static_cast<double>(result.tokens.size()), result.generate_seconds);
}

Json logprob_json(TokenId token, double logprob, const Tokenizer* tokenizer) {
  Json entry{{"token", token}};
  if (tokenizer != nullptr) {
    entry["piece"] = replace_invalid_utf8(tokenizer->piece(token));
  }
  entry["logprob"] = logprob;
  return entry;
}

}  // namespace

Json usage_json(const GenerationReport& report, const GenerationResult& result) {
  return {{"prompt_tokens", report.prompt_tokens}, {"completion_tokens", result.tokens.size()}};
}

Json timings_json(const GenerationReport& report, const GenerationResult& result) {
  return {{"load_ms", report.load_seconds * kMilliseconds},
          {"prompt_ms", result.prompt_seconds * kMilliseconds},
          {"generate_ms", result.generate_seconds * kMilliseconds},
          {"prompt_tokens_per_second", prompt_speed(report, result)},
          {"tokens_per_second", generation_speed(result)}};
}

Json logprobs_json(const std::vector<TokenLogprobs>& logprobs, const Tokenizer* tokenizer) {
  Json list = Json::array();
  for (const TokenLogprobs& chosen : logprobs) {
    Json entry = logprob_json(chosen.token, chosen.logprob, tokenizer);
    Json& top = entry["top_logprobs"] = Json::array();
    for (const auto& [token, logprob] : chosen.top) {
      top.push_back(logprob_json(token, logprob, tokenizer));
    }
    list.push_back(std::move(entry));
  }
  return list;
}

void print_stats(const GenerationReport& report, const GenerationResult& result) {
  std::cerr << fmt::format(
      "prompt:     {} tokens, {:.1f} ms, {:.1f} tokens/s\n"
      "generation: {} tokens, {:.1f} ms, {:.1f} tokens/s, finish reason {}\n"
      "loading:    {:.1f} ms\n"
      "set-up:     seed {}, {} threads, {} kernels\n",
      report.evaluated_tokens, result.prompt_seconds * kMilliseconds, prompt_speed(report, result),
      result.tokens.size(), result.generate_seconds * kMilliseconds, generation_speed(result),
      to_string(result.reason), report.load_seconds * kMilliseconds, report.seed, report.threads,
      report.isa);
}

}  // namespace openelm::cli
