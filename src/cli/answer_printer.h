#pragma once

#include <string>
#include <string_view>

#include "cli/output.h"

namespace openelm::cli {

/// Writes an answer as it comes, without the white space around it if `trims`; that inside is held
/// back until something follows.
class AnswerPrinter {
 public:
  AnswerPrinter(Output& output, bool trims) : output_(output), trims_(trims) {}

  void write(std::string_view text);

  /// Ends the answer's last line.
  void finish();

 private:
  Output& output_;
  bool trims_;
  bool begun_ = false;
  std::string held_;
};

/// `text` without the white space around it.
std::string_view trim(std::string_view text);

}  // namespace openelm::cli
