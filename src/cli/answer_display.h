#pragma once

#include <span>
#include <string>
#include <string_view>

#include <openelm/generation.h>
#include <openelm/tokenizer.h>

#include "cli/answer_printer.h"
#include "cli/chat.h"
#include "cli/generation_report.h"
#include "cli/output.h"

namespace openelm::cli {

/// How answers are shown.
struct DisplayOptions {
  bool json = false;    ///< an object a turn
  bool streams = true;  ///< text as it comes
  bool stats = false;   ///< timings after each answer, on stderr
  bool trims = true;    ///< without the white space around it
};

/// Answers on standard output; all else about them on stderr.
class AnswerDisplay {
 public:
  explicit AnswerDisplay(const DisplayOptions& options) : options_(options) {}

  /// Where the text of the next answer goes as it comes.
  TextCallback begin();

  /// Shows what has not been shown of the answer to `message`, the `turn`th.
  void end(std::size_t turn, const std::string& message, const Answer& answer,
           const GenerationReport& report);

 private:
  DisplayOptions options_;
  Output output_;
  AnswerPrinter printer_{output_, true};
};

/// Ids as the model sees them, for people: control tokens as the vocabulary spells them in
/// brackets, and the ids themselves in a last line.
std::string describe_prompt(const Tokenizer& tokenizer, std::span<const TokenId> ids);

/// Ids with their pieces: "1 <s>  529 \u2581<".
std::string describe_tokens(const Tokenizer& tokenizer, std::span<const TokenId> ids);

}  // namespace openelm::cli
