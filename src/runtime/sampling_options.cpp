#include <cmath>
#include <sstream>
#include <string>

#include <openelm/error.h>
#include <openelm/sampling.h>

namespace openelm {
namespace {

template <typename T>
void require(bool valid, const char* option, T got, const char* range) {
  if (valid) return;
  std::ostringstream message;
  message << option << " must be " << range << ", got " << got;
  throw UsageError(message.str());
}

bool in_unit_interval(float value) { return value >= 0.0F && value <= 1.0F; }

}  // namespace

void SamplingOptions::validate(std::int32_t vocab_size) const {
  require(std::isfinite(temperature) && temperature >= 0.0F, "temperature", temperature,
          "a number from 0");
  require(top_k >= 0, "top-k", top_k, "0 (off) or more");
  require(in_unit_interval(top_p), "top-p", top_p, "between 0 and 1 (off)");
  require(in_unit_interval(min_p), "min-p", min_p, "between 0 (off) and 1");
  require(std::isfinite(repetition_penalty) && repetition_penalty > 0.0F, "repetition-penalty",
          repetition_penalty, "a number above 0 (1: off)");
  require(repetition_window >= -1, "repetition-window", repetition_window,
          "-1 (all), 0 (off) or more");
  require(std::isfinite(frequency_penalty), "frequency-penalty", frequency_penalty,
          "a finite number");
  require(std::isfinite(presence_penalty), "presence-penalty", presence_penalty, "a finite number");
  for (const auto& [id, bias] : logit_bias) {
    const std::string of_token = "logit-bias of token " + std::to_string(id);
    if (id < 0 || id >= vocab_size) {
      throw UsageError(of_token + ": the vocabulary has ids 0 to " +
                       std::to_string(vocab_size - 1));
    }
    require(!std::isnan(bias) && bias < INFINITY, of_token.c_str(), bias,
            "a finite number or -inf");
  }
}

}  // namespace openelm
