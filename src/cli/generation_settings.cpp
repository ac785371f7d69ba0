#include "cli/generation_settings.h"

#include <algorithm>
#include <array>
#include <limits>
#include <variant>

#include <spdlog/fmt/fmt.h>

#include <openelm/error.h>

#include "cli/parse_number.h"

namespace openelm::cli {
namespace {

constexpr double kFloatMax = std::numeric_limits<float>::max();
constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();

constexpr std::string_view kLogitBias = "logit-bias";
constexpr std::string_view kSeed = "seed";
constexpr std::string_view kMaxTokens = "max-tokens";
constexpr std::string_view kIgnoreEos = "ignore-eos";

using Member = std::variant<float SamplingOptions::*, std::int32_t SamplingOptions::*>;
struct Number {
  std::string_view name;
  Member member;
};
constexpr std::array kNumbers{
    Number{"temperature", &SamplingOptions::temperature},
    Number{"top-k", &SamplingOptions::top_k},
    Number{"top-p", &SamplingOptions::top_p},
    Number{"min-p", &SamplingOptions::min_p},
    Number{"repetition-penalty", &SamplingOptions::repetition_penalty},
    Number{"repetition-window", &SamplingOptions::repetition_window},
    Number{"frequency-penalty", &SamplingOptions::frequency_penalty},
    Number{"presence-penalty", &SamplingOptions::presence_penalty},
};

std::string bias_text(const SamplingOptions& sampling) {
  std::string text;
  for (const auto& [id, bias] : sampling.logit_bias) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", id, bias);
  }
  return text.empty() ? "none" : text;
}

/// "13=-2.5 14=-inf", or "none".
std::vector<std::pair<TokenId, float>> parse_biases(std::string_view name, std::string_view text) {
  std::vector<std::pair<TokenId, float>> biases;
  if (text == "none") return biases;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) biases.push_back(parse_bias(name, text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return biases;
}

bool parse_flag(std::string_view name, std::string_view text) {
  if (text == "true" || text == "on") return true;
  if (text == "false" || text == "off") return false;
  throw UsageError(std::string(name) + ": expected on or off, got '" + std::string(text) + "'");
}

/// False when no number is called so.
bool change_number(SamplingOptions& sampling, std::string_view name, std::string_view value) {
  const auto* number = std::ranges::find(kNumbers, name, &Number::name);
  if (number == kNumbers.end()) return false;
  if (const auto* real = std::get_if<float SamplingOptions::*>(&number->member)) {
    sampling.*(*real) = static_cast<float>(parse_real(name, value, {-kFloatMax, kFloatMax}));
  } else {
    sampling.*std::get<std::int32_t SamplingOptions::*>(number->member) =
        static_cast<std::int32_t>(parse_integer(name, value, -1, kIntMax));
  }
  return true;
}

[[noreturn]] void fail_unknown(std::string_view name) {
  std::string names;
  for (const Setting& setting : settings_of({})) {
    names += (names.empty() ? "" : ", ") + setting.name;
  }
  throw UsageError("no setting '" + std::string(name) + "'; there are " + names);
}

}  // namespace

std::vector<Setting> settings_of(const GenerationOptions& options) {
  std::vector<Setting> settings;
  for (const Number& number : kNumbers) {
    std::string value = std::visit(
        [&](auto member) { return fmt::format("{}", options.sampling.*member); }, number.member);
    settings.push_back({std::string(number.name), std::move(value)});
  }
  settings.push_back({std::string(kLogitBias), bias_text(options.sampling)});
  settings.push_back({std::string(kSeed), std::to_string(options.sampling.seed)});
  settings.push_back({std::string(kMaxTokens), std::to_string(options.max_tokens)});
  settings.push_back({std::string(kIgnoreEos), options.ignore_eos ? "true" : "false"});
  return settings;
}

void change_setting(GenerationOptions& options, std::string_view name, std::string_view value,
                    std::int32_t vocab_size) {
  std::string plain(name);
  std::ranges::replace(plain, '_', '-');
  GenerationOptions changed = options;
  if (plain == kLogitBias) {
    changed.sampling.logit_bias = parse_biases(plain, value);
  } else if (plain == kSeed) {
    changed.sampling.seed = parse_unsigned(plain, value);
  } else if (plain == kMaxTokens) {
    changed.max_tokens = static_cast<std::int32_t>(parse_integer(plain, value, -1, kIntMax));
  } else if (plain == kIgnoreEos) {
    changed.ignore_eos = parse_flag(plain, value);
  } else if (!change_number(changed.sampling, plain, value)) {
    fail_unknown(name);
  }
  changed.sampling.validate(vocab_size);
  options = std::move(changed);
}

}  // namespace openelm::cli
