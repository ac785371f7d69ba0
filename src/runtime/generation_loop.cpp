#include "runtime/generation_loop.h"

#include <chrono>

#include <openelm/error.h>

#include "runtime/generation_state.h"

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

std::span<const float> evaluate_prompt(LogitSource& source, std::span<const TokenId> prompt) {
  if (!prompt.empty()) return source.evaluate(prompt);
  if (source.tokens().empty()) throw UsageError("nothing to go on from: the prompt is empty");
  // The sequence goes on from where it stands. Its last logits are gone, but evaluating its last
  // token again gives the same ones, bit for bit.
  const TokenId last = source.tokens().back();
  source.rewind(static_cast<std::int32_t>(source.tokens().size()) - 1);
  return source.evaluate({&last, 1});
}

}  // namespace

GenerationResult run_generation(LogitSource& source, const Tokenizer* tokenizer,
                                std::span<const TokenId> prompt, const GenerationOptions& options,
                                const TextCallback& on_text, bool at_start) {
  const std::size_t held = source.tokens().size() + prompt.size();
  GenerationState state({.tokenizer = tokenizer,
                         .vocab_size = source.vocab_size(),
                         .eos_id = source.eos_id(),
                         .room = source.context() - static_cast<std::int32_t>(held)},
                        options, on_text, at_start);
  double prompt_seconds = 0;
  double generate_seconds = 0;
  try {
    std::span<const float> logits = [&] {
      const ScopedTimer timer(prompt_seconds);
      return evaluate_prompt(source, prompt);
    }();
    const ScopedTimer timer(generate_seconds);
    while (state.wants_token()) {
      if (!state.tokens().empty()) logits = source.evaluate({&state.tokens().back(), 1});
      state.choose(logits, source.tokens());
    }
  } catch (const Interrupted&) {
    state.interrupt();
  }
  GenerationResult result = state.finish();
  result.prompt_seconds = prompt_seconds;
  result.generate_seconds = generate_seconds;
  return result;
}

}  // namespace openelm
