#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <openelm/engine.h>
#include <openelm/tokenizer.h>

namespace openelm {

/// Where BOS stands when a long text is cut into windows.
enum class BosRule {
  window,  ///< at the start of every window, as one of its tokens
  first,   ///< once, before the text
  none,
};

/// How a long text is cut into windows, and which of their tokens count.
enum class ScoringRule {
  openelm,    ///< each token once, in the first window in which a token stands before it
  llama_cpp,  ///< as llama-perplexity: whole windows that begin with BOS, their second halves
  lm_eval,    ///< as the LM Evaluation Harness' rolling log-likelihood
};

struct WindowOptions {
  ScoringRule rule = ScoringRule::openelm;
  /// Tokens of a window, BOS included; 0: the model's own. lm_eval: tokens scored by a window.
  std::int32_t context = 0;
  /// Tokens of the text from one window to the next; 0: as many as a window holds. Only openelm.
  std::int32_t stride = 0;
  BosRule bos = BosRule::window;  ///< only openelm
};

/// What a text's tokens came to. Undefined figures are absent: nothing was scored, or not enough.
struct TextScore {
  std::int64_t tokens = 0;  ///< of the text, BOS not counted
  std::int64_t scored = 0;
  std::int64_t bytes = 0;             ///< of the scored tokens' text
  std::optional<std::int64_t> words;  ///< runs of white space plus 1; only if all tokens are scored
  double nll = 0;                     ///< negative log-likelihood of the scored tokens, in nats
  double nll_squares = 0;             ///< sum of its squares, token by token
  bool partial = false;               ///< interrupted

  std::optional<double> perplexity() const;
  /// Of the perplexity, from the spread of the tokens' log-likelihoods taken as independent.
  std::optional<double> standard_error() const;
  std::optional<double> bits_per_byte() const;
  std::optional<double> word_perplexity() const;

  TextScore& operator+=(const TextScore& other);
};

struct ScoredToken {
  std::int64_t index = 0;  ///< in the text, from 0, BOS not counted
  TokenId id = 0;
  double logprob = 0;     ///< natural logarithm
  std::int32_t rank = 0;  ///< 1: the model's first choice; only with details
  double entropy = 0;     ///< of the model's distribution, in nats; only with details
};

/// Reads up to to.size() bytes of text and says how many; 0 at the end.
using ReadText = std::function<std::size_t(std::span<char> to)>;

struct PerplexityHooks {
  /// Tokens as they are scored, in order, many at a time.
  std::function<void(std::span<const ScoredToken> tokens)> on_tokens = {};
  bool details = false;  ///< rank and entropy too
  /// After each group of windows: the score so far, and how much of the text that has been read
  /// it covers, in bytes.
  std::function<void(const TextScore& score, std::int64_t bytes_done)> progress = {};
  /// Set from a signal handler to end with what is scored so far.
  const std::atomic<bool>* cancel = nullptr;
};

/// Perplexity of texts of any length: they are read as a stream, tokenized piece by piece (the ids
/// are those of the whole text), and several windows are evaluated together. Logits are not kept.
class PerplexityEvaluator {
 public:
  /// Throws UsageError for options that contradict the model or each other.
  PerplexityEvaluator(std::shared_ptr<const Engine> engine,
                      std::shared_ptr<const Tokenizer> tokenizer, const WindowOptions& options,
                      KvType kv_type = KvType::f32);
  ~PerplexityEvaluator();

  /// The options with nothing left open.
  const WindowOptions& options() const noexcept;

  /// Scores one text; `max_tokens` >= 0 ends it early. Throws Error "<name>: ..." for bytes that
  /// are not UTF-8 and for a text too short for the rule, and when a logit is not finite.
  TextScore evaluate(const ReadText& read, const std::string& name, std::int64_t max_tokens = -1,
                     const PerplexityHooks& hooks = {});

  /// The same for tokens; `tokens` does not hold the BOS that the rule puts in.
  TextScore evaluate(std::span<const TokenId> tokens, const PerplexityHooks& hooks = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace openelm
