#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <openelm/config.h>

namespace openelm {

/// How the next token is chosen. Applied in this order: penalties and bias, temperature, top-k,
/// top-p, min-p, draw.
struct SamplingOptions {
  float temperature = 0.8F;             ///< 0: greedy, ties to the lowest id
  std::int32_t top_k = 40;              ///< 0: off
  float top_p = 0.95F;                  ///< 1: off; at least one token is always kept
  float min_p = 0.0F;                   ///< 0: off; relative to the best token's probability
  float repetition_penalty = 1.0F;      ///< divides positive logits, multiplies negative ones
  std::int32_t repetition_window = 64;  ///< last tokens looked at, prompt included; -1: all, 0: off
  float frequency_penalty = 0.0F;       ///< subtracted per occurrence in the window
  float presence_penalty = 0.0F;        ///< subtracted once if it occurs in the window
  std::vector<std::pair<TokenId, float>> logit_bias = {};  ///< added; -inf forbids a token
  std::uint64_t seed = 0;

  /// Throws UsageError that names the option and its range.
  void validate(std::int32_t vocab_size) const;
};

/// One candidate of a distribution.
struct TokenProbability {
  TokenId id;
  double probability;
};

/// The first token, in the order given, whose cumulative probability exceeds `u` in [0, 1).
/// `distribution` is not empty.
TokenId pick(std::span<const TokenProbability> distribution, double u) noexcept;

/// Draws tokens. The n-th draw depends on (seed, n) and the logits alone: it is
/// pick(distribution(...), u), with u a function of the seed and the step.
class Sampler {
 public:
  /// Throws UsageError when an option is out of range.
  Sampler(const SamplingOptions& options, std::int32_t vocab_size);

  /// The next token after `history` (all tokens so far, prompt included) given `logits`
  /// [vocab_size]. Tokens in `forbidden` have no chance, nor those whose logit is -inf. Throws
  /// Error when no token is left, or when a logit is NaN or +inf.
  TokenId sample(std::span<const float> logits, std::span<const TokenId> history,
                 std::span<const TokenId> forbidden = {});

  /// The distribution that sample() would draw from: best first, ties to the lower id.
  std::vector<TokenProbability> distribution(std::span<const float> logits,
                                             std::span<const TokenId> history,
                                             std::span<const TokenId> forbidden = {});

  /// Draws made so far; setting it makes a session resumable.
  std::uint64_t step() const noexcept { return step_; }
  void set_step(std::uint64_t step) noexcept { step_ = step; }

  const SamplingOptions& options() const noexcept { return options_; }

 private:
  struct Candidate {
    TokenId id;
    float logit;
  };
  /// Bounds of the sum of the weights of the tokens in play.
  struct Mass {
    double low = 0;
    double high = 0;
    bool exact() const noexcept { return low == high; }
  };

  void adjust(std::span<const float> logits, std::span<const TokenId> history,
              std::span<const TokenId> forbidden);
  void penalise(std::span<const TokenId> history);
  void shape(std::span<const float> logits, std::span<const TokenId> history,
             std::span<const TokenId> forbidden);
  void sum_exactly();
  bool reaches(double part, double share);
  void truncate();
  bool rank(std::size_t count);
  void gather(std::size_t count);
  double weight(float logit) const noexcept;
  std::optional<TokenId> draw_within_bounds(double u);

  SamplingOptions options_;
  std::int32_t vocab_size_;
  std::uint64_t step_ = 0;
  std::vector<float> logits_;          // [vocab_size] after penalties and bias
  std::vector<std::int32_t> counts_;   // [vocab_size] occurrences in the window; zero between calls
  std::vector<float> maxima_;          // the largest logit of each block
  std::vector<float> group_maxima_;    // of groups of blocks
  std::vector<Candidate> candidates_;  // the best tokens; the first ranked_ of them in order
  std::size_t ranked_ = 0;
  std::size_t limit_ = 0;    // tokens in play, unless fewer are not forbidden
  float gathered_from_ = 0;  // candidates_ holds every logit from here up
  float best_logit_ = 0;
  Mass mass_;
};

/// log softmax(logits)[id], summed in double. Throws Error when `id` is outside of `logits`.
double log_probability(std::span<const float> logits, TokenId id);

}  // namespace openelm
