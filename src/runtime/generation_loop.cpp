#include "runtime/generation_loop.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <openelm/error.h>

#include "runtime/logprobs.h"
#include "text/stop_matcher.h"

namespace openelm {
namespace {

/// Writes the seconds of its own life to a variable, whichever way its scope is left.
class ScopedTimer {
 public:
  explicit ScopedTimer(double& seconds) : seconds_(seconds) {}
  ~ScopedTimer() { seconds_ = std::chrono::duration<double>(Clock::now() - start_).count(); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& seconds_;
  Clock::time_point start_ = Clock::now();
};

void require_valid(const GenerationOptions& options, const Tokenizer* tokenizer,
                   std::int32_t vocab_size) {
  if (options.max_tokens < -1) {
    throw UsageError("max-tokens must be -1 (no limit), 0 or more, got " +
                     std::to_string(options.max_tokens));
  }
  if (options.logprobs < -1 || options.logprobs > vocab_size) {
    throw UsageError("logprobs must be between 0 and the vocabulary's " +
                     std::to_string(vocab_size) + ", got " + std::to_string(options.logprobs));
  }
  if (tokenizer == nullptr && !options.stop.empty()) {
    throw UsageError("stop strings need a tokenizer");
  }
}

/// From token ids to the text that the user sees: whole characters, up to the stop string.
class TextOutput {
 public:
  TextOutput(const Tokenizer* tokenizer, const GenerationOptions& options,
             const TextCallback& on_text, bool at_start)
      : stops_(options.stop), on_text_(on_text) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, at_start);
  }

  /// False when the callback asks to end.
  bool push(TokenId id) { return !decoder_ || emit(stops_.push(decoder_->push(id))); }

  /// Gives out what was held back, unless the callback wants no more.
  void finish() {
    if (!decoder_ || refused_) return;
    std::string rest = stops_.push(decoder_->finish());
    emit(rest + stops_.finish());
  }

  const std::optional<std::string>& stop() const { return stops_.fired(); }
  std::string take() { return std::move(text_); }

 private:
  bool emit(const std::string& certain) {
    text_ += certain;
    if (!certain.empty() && on_text_) refused_ = !on_text_(certain);
    return !refused_;
  }

  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  const TextCallback& on_text_;
  std::string text_;
  bool refused_ = false;
};

std::span<const float> evaluate_prompt(LogitSource& source, std::span<const TokenId> prompt) {
  if (!prompt.empty()) return source.evaluate(prompt);
  if (source.tokens().empty()) throw UsageError("nothing to go on from: the prompt is empty");
  // The sequence goes on from where it stands. Its last logits are gone, but evaluating its last
  // token again gives the same ones, bit for bit.
  const TokenId last = source.tokens().back();
  source.rewind(static_cast<std::int32_t>(source.tokens().size()) - 1);
  return source.evaluate({&last, 1});
}

/// Adds tokens to `result` until something ends the generation, and says what. Throws Interrupted.
FinishReason generate_tokens(LogitSource& source, std::span<const float> logits,
                             const GenerationOptions& options, Sampler& sampler, TextOutput& text,
                             GenerationResult& result) {
  const TokenId eos = source.eos_id();
  const std::span<const TokenId> forbidden(&eos, options.ignore_eos ? 1 : 0);
  const auto max_tokens = static_cast<std::size_t>(options.max_tokens);  // -1: more than ever come
  const std::size_t room = static_cast<std::size_t>(source.context()) - source.tokens().size();
  std::vector<TokenId>& tokens = result.tokens;
  while (true) {
    if (tokens.size() == max_tokens) return FinishReason::length;
    if (tokens.size() == room) return FinishReason::context;
    // A token is evaluated only once another one is wanted after it.
    if (!tokens.empty()) logits = source.evaluate({&tokens.back(), 1});

    const std::span<const TokenId> history = source.tokens();
    sampler.set_step(history.size());
    const TokenId token = sampler.sample(logits, history, forbidden);
    if (token == eos) return FinishReason::stop;
    tokens.push_back(token);
    if (options.logprobs >= 0) {
      const auto count = static_cast<std::size_t>(options.logprobs);
      result.logprobs.push_back(token_logprobs(logits, token, count));
    }
    const bool go_on = text.push(token);
    if (text.stop()) return FinishReason::stop;
    if (!go_on) return FinishReason::interrupted;
  }
}

}  // namespace

GenerationResult run_generation(LogitSource& source, const Tokenizer* tokenizer,
                                std::span<const TokenId> prompt, const GenerationOptions& options,
                                const TextCallback& on_text, bool at_start) {
  require_valid(options, tokenizer, source.vocab_size());
  Sampler sampler(options.sampling, source.vocab_size());
  TextOutput text(tokenizer, options, on_text, at_start);
  GenerationResult result;

  try {
    const std::span<const float> logits = [&] {
      const ScopedTimer timer(result.prompt_seconds);
      return evaluate_prompt(source, prompt);
    }();
    const ScopedTimer timer(result.generate_seconds);
    result.reason = generate_tokens(source, logits, options, sampler, text, result);
  } catch (const Interrupted&) {
    result.reason = FinishReason::interrupted;
  }
  text.finish();
  result.text = text.take();
  result.stop = text.stop();
  return result;
}

}  // namespace openelm
