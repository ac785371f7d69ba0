#include <openelm/generation.h>

#include "runtime/generation_loop.h"

namespace openelm {
namespace {

class SessionSource final : public LogitSource {
 public:
  explicit SessionSource(Session& session) : session_(session) {}

  std::span<const float> evaluate(std::span<const TokenId> tokens) override {
    return session_.evaluate(tokens);
  }
  void rewind(std::int32_t length) override { session_.rewind(length); }
  std::span<const TokenId> tokens() const override { return session_.tokens(); }
  std::int32_t context() const override { return session_.context(); }
  std::int32_t vocab_size() const override { return session_.engine().config().vocab_size; }
  TokenId eos_id() const override { return session_.engine().config().eos_id; }

 private:
  Session& session_;
};

}  // namespace

const char* to_string(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "unknown";
}

GenerationResult generate(Session& session, const Tokenizer* tokenizer,
                          std::span<const TokenId> prompt, const GenerationOptions& options,
                          const TextCallback& on_text, bool at_start) {
  SessionSource source(session);
  return run_generation(source, tokenizer, prompt, options, on_text, at_start);
}

}  // namespace openelm
