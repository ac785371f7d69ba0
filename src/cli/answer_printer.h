#pragma once

#include <string>
#include <string_view>

#include "cli/output.h"
#include "cli/word_wrap.h"

namespace openelm::cli {

/// Writes an answer as it comes, without the white space around it if `trims`; that inside is held
/// back until something follows. On a terminal, lines are wrapped at words.
class AnswerPrinter {
 public:
  AnswerPrinter(Output& output, bool trims) : output_(&output), trims_(trims) {}

  void write(std::string_view text);

  /// Ends the answer's last line.
  void finish();

 private:
  void show(std::string_view text);

  Output* output_;
  WordWrap wrap_;
  bool trims_;
  bool begun_ = false;
  std::string held_;
};

/// `text` without the white space around it.
std::string_view trim(std::string_view text);

}  // namespace openelm::cli
