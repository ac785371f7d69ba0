#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openelm/sampling.h>
#include <openelm/session.h>
#include <openelm/tokenizer.h>

namespace openelm {

enum class FinishReason {
  stop,         ///< EOS or a stop string
  length,       ///< max_tokens generated
  context,      ///< the context is full
  interrupted,  ///< the cancel flag was set, or the text callback asked to end
};

const char* to_string(FinishReason reason) noexcept;

struct GenerationOptions {
  std::int32_t max_tokens = -1;   ///< -1: until EOS, a stop string or the context's end
  std::vector<std::string> stop;  ///< generation ends before the first of them; none is empty
  bool ignore_eos = false;        ///< EOS is never chosen
  std::int32_t logprobs = -1;     ///< -1: none; K: of each token, and of the K best
  SamplingOptions sampling;
};

struct TokenLogprobs {
  TokenId token;
  double logprob;                               ///< of the model's own distribution
  std::vector<std::pair<TokenId, double>> top;  ///< best first
};

struct GenerationResult {
  std::string text;             ///< cut before the stop string; may end inside a character
  std::vector<TokenId> tokens;  ///< all that were generated, those of the stop string too; no EOS
  FinishReason reason = FinishReason::length;
  std::optional<std::string> stop;      ///< the stop string that fired
  std::vector<TokenLogprobs> logprobs;  ///< one for each of `tokens`, if asked for
  double prompt_seconds = 0;            ///< evaluating the prompt
  double generate_seconds = 0;          ///< from the first choice to the end
};

/// Text as it becomes certain: whole characters, never a part of a stop string. Return false to
/// end.
using TextCallback = std::function<bool(std::string_view text)>;

/// Evaluates `prompt` (may be empty if the session holds tokens already, and then goes on from
/// those) and generates after it.
/// `tokenizer` may be null: then `text` stays empty and stop strings are a UsageError.
/// `at_start`: the generated text begins a text (see StreamDecoder).
///
/// What ends it, the first that applies: EOS or a stop string; the callback or the session's cancel
/// flag; `max_tokens` (0: the prompt is evaluated and that is all); the context, which prompt and
/// generated tokens together never exceed, so that a prompt as long as the context gives no token.
/// Only generated text is searched for stop strings. Of several, the one completed first fires.
///
/// The pieces given to `on_text`, put together, are `text`. At the end, what was held back as the
/// possible start of a stop string is given out, and so are the bytes of an unfinished character,
/// as they are. If the callback returned false nothing is given out any more.
///
/// The session then holds what it held, the prompt, and all of `tokens` but the last, which is
/// evaluated only where another one follows (after EOS: the last, too). So a caller that goes on
/// compares session.tokens() with what it wants there. Interrupted in the prompt, it holds what it
/// held (with an empty prompt: without the last token). The draw of the token at position p of the
/// sequence depends on the seed and p, so a generation cut in two gives the same tokens.
///
/// Throws UsageError for options out of range or nothing to go on from, Error as
/// Session::evaluate and Sampler::sample do.
GenerationResult generate(Session& session, const Tokenizer* tokenizer,
                          std::span<const TokenId> prompt, const GenerationOptions& options,
                          const TextCallback& on_text = {}, bool at_start = false);

}  // namespace openelm
