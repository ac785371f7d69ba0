#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <openelm/error.h>
#include <openelm/session.h>

#include "runtime/generation_loop.h"

namespace openelm {

/// A model for tests that wants the tokens of a script, one after the other: the script's first
/// after a prompt of `prompt_length` tokens, and after its end its last for ever.
class ScriptedSource final : public LogitSource {
 public:
  ScriptedSource(std::int32_t vocab_size, std::size_t prompt_length, std::vector<TokenId> script)
      : prompt_length_(prompt_length),
        script_(std::move(script)),
        logits_(static_cast<std::size_t>(vocab_size)) {}

  std::span<const float> evaluate(std::span<const TokenId> tokens) override {
    const std::size_t length = tokens_.size() + tokens.size();
    if (length > static_cast<std::size_t>(context_size)) {
      throw Error(std::to_string(length) + " tokens do not fit the context of " +
                  std::to_string(context_size));
    }
    if (on_evaluate) on_evaluate(length);
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
    ++passes;
    const std::size_t at = std::min(length - prompt_length_, script_.size() - 1);
    std::fill(logits_.begin(), logits_.end(), 0.0F);
    logits_[static_cast<std::size_t>(script_[at])] = wish;
    return logits_;
  }
  void rewind(std::int32_t length) override { tokens_.resize(static_cast<std::size_t>(length)); }
  std::span<const TokenId> tokens() const override { return tokens_; }
  std::int32_t context() const override { return context_size; }
  std::int32_t vocab_size() const override { return static_cast<std::int32_t>(logits_.size()); }
  TokenId eos_id() const override { return 1; }

  std::int32_t context_size = 100;
  float wish = 10.0F;                            ///< logit of the script's token; others: 0
  int passes = 0;                                ///< evaluations so far
  std::function<void(std::size_t)> on_evaluate;  ///< called with the length before a pass

 private:
  std::size_t prompt_length_;
  std::vector<TokenId> script_;
  std::vector<float> logits_;
  std::vector<TokenId> tokens_;
};

}  // namespace openelm
