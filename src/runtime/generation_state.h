#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <openelm/generation.h>

#include "runtime/stopped_text.h"

namespace openelm {

/// From token ids to the text that the user sees: whole characters, up to the stop string.
class TextOutput {
 public:
  /// `tokenizer` may be null: then there is no text. `on_text` must outlive the object.
  TextOutput(const Tokenizer* tokenizer, const std::vector<std::string>& stops,
             const TextCallback& on_text, bool at_start);

  /// False when the callback asks to end.
  bool push(TokenId id);

  /// Gives out what was held back, unless the callback wants no more.
  void finish();

  const std::optional<std::string>& stop() const { return text_.stop(); }
  std::string take() { return text_.take(); }

 private:
  std::optional<StreamDecoder> decoder_;
  StoppedText text_;
};

/// What a generation runs on: all that its rules need to know of the model.
struct GenerationSetting {
  const Tokenizer* tokenizer;  ///< null: ids only
  std::int32_t vocab_size;
  TokenId eos_id;
  std::int32_t room;  ///< tokens that the context can take after the prompt
};

/// The rules of generate() without the model: whoever has the logits asks whether another token is
/// wanted, and lets it be chosen from them.
class GenerationState {
 public:
  /// Throws UsageError for options out of range. `on_text` must outlive the object.
  GenerationState(const GenerationSetting& setting, const GenerationOptions& options,
                  const TextCallback& on_text, bool at_start);

  /// False once something has ended the generation. Asked before every choice.
  bool wants_token();

  /// Adds the token that follows `history` (all tokens so far, prompt included), whose logits
  /// [vocab_size] are given. Throws as Sampler::sample.
  void choose(std::span<const float> logits, std::span<const TokenId> history);

  /// The tokens generated so far; the last one is evaluated only when wants_token() says so.
  const std::vector<TokenId>& tokens() const noexcept { return result_.tokens; }

  void interrupt() noexcept { reason_ = FinishReason::interrupted; }

  /// Gives out the rest of the text and ends it. Without timings.
  GenerationResult finish();

 private:
  TokenId eos_id_;
  std::size_t room_;
  std::size_t max_tokens_;
  bool ignore_eos_;
  std::int32_t logprobs_;
  Sampler sampler_;
  TextOutput text_;
  std::optional<FinishReason> reason_;
  GenerationResult result_;
};

}  // namespace openelm
