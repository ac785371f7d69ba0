#pragma once

#include <cstdint>
#include <span>

#include <openelm/generation.h>

namespace openelm {

/// All that the loop needs of a model: one sequence of tokens that grows and yields logits. A
/// Session is one; tests put a script in its place.
class LogitSource {
 public:
  virtual ~LogitSource() = default;

  /// As Session::evaluate, rewind, tokens and context.
  virtual std::span<const float> evaluate(std::span<const TokenId> tokens) = 0;
  virtual void rewind(std::int32_t length) = 0;
  virtual std::span<const TokenId> tokens() const = 0;
  virtual std::int32_t context() const = 0;

  virtual std::int32_t vocab_size() const = 0;
  virtual TokenId eos_id() const = 0;
};

/// generate() over any source of logits; see there for the rules.
GenerationResult run_generation(LogitSource& source, const Tokenizer* tokenizer,
                                std::span<const TokenId> prompt, const GenerationOptions& options,
                                const TextCallback& on_text, bool at_start);

}  // namespace openelm
