#include "runtime/generation_state.h"

#include <algorithm>
#include <utility>

#include <openelm/error.h>

#include "runtime/logprobs.h"

namespace openelm {
namespace {

/// The options, unless one of them is out of range.
const GenerationOptions& checked(const GenerationOptions& options,
                                 const GenerationSetting& setting) {
  if (options.max_tokens < -1) {
    throw UsageError("max-tokens must be -1 (no limit), 0 or more, got " +
                     std::to_string(options.max_tokens));
  }
  if (options.logprobs < -1 || options.logprobs > setting.vocab_size) {
    throw UsageError("logprobs must be between 0 and the vocabulary's " +
                     std::to_string(setting.vocab_size) + ", got " +
                     std::to_string(options.logprobs));
  }
  if (setting.tokenizer == nullptr && !options.stop.empty()) {
    throw UsageError("stop strings need a tokenizer");
  }
  return options;
}

}  // namespace

TextOutput::TextOutput(const Tokenizer* tokenizer, const std::vector<std::string>& stops,
                       const TextCallback& on_text, bool at_start)
    : text_(stops, on_text) {
  if (tokenizer != nullptr) decoder_.emplace(*tokenizer, at_start);
}

bool TextOutput::push(TokenId id) { return !decoder_ || text_.push(decoder_->push(id)); }

void TextOutput::finish() {
  if (decoder_) text_.finish(decoder_->finish());
}

GenerationState::GenerationState(const GenerationSetting& setting, const GenerationOptions& options,
                                 const TextCallback& on_text, bool at_start)
    : eos_id_(setting.eos_id),
      room_(static_cast<std::size_t>(std::max(setting.room, 0))),
      max_tokens_(static_cast<std::size_t>(options.max_tokens)),  // -1: more than ever come
      ignore_eos_(options.ignore_eos),
      logprobs_(options.logprobs),
      sampler_(checked(options, setting).sampling, setting.vocab_size),
      text_(setting.tokenizer, options.stop, on_text, at_start) {}

bool GenerationState::wants_token() {
  if (!reason_ && tokens().size() == max_tokens_) reason_ = FinishReason::length;
  if (!reason_ && tokens().size() == room_) reason_ = FinishReason::context;
  return !reason_;
}

void GenerationState::choose(std::span<const float> logits, std::span<const TokenId> history) {
  const std::span<const TokenId> forbidden(&eos_id_, ignore_eos_ ? 1 : 0);
  sampler_.set_step(history.size());
  const TokenId token = sampler_.sample(logits, history, forbidden);
  if (token == eos_id_) {
    reason_ = FinishReason::stop;
    return;
  }
  result_.tokens.push_back(token);
  if (logprobs_ >= 0) {
    result_.logprobs.push_back(token_logprobs(logits, token, static_cast<std::size_t>(logprobs_)));
  }
  const bool go_on = text_.push(token);
  if (text_.stop()) {
    reason_ = FinishReason::stop;
  } else if (!go_on) {
    reason_ = FinishReason::interrupted;
  }
}

GenerationResult GenerationState::finish() {
  text_.finish();
  result_.text = text_.take();
  result_.stop = text_.stop();
  result_.reason = reason_.value_or(FinishReason::interrupted);
  return std::move(result_);
}

}  // namespace openelm
