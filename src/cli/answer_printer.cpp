#include "cli/answer_printer.h"

#include <algorithm>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace openelm::cli {
namespace {

constexpr std::string_view kWhiteSpace = " \t\r\n";

/// Of the window that standard output is; 0: not to be wrapped.
int terminal_columns() {
  const char* term = std::getenv("TERM");
  winsize size{};
  if (term == nullptr || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace

void AnswerPrinter::write(std::string_view text) {
  if (!trims_) {
    begun_ = begun_ || !text.empty();
    show(text);
    return;
  }
  if (!begun_) {
    text.remove_prefix(std::min(text.find_first_not_of(kWhiteSpace), text.size()));
    if (text.empty()) return;
    begun_ = true;
  }
  const std::size_t last = text.find_last_not_of(kWhiteSpace);
  if (last == std::string_view::npos) {
    held_ += text;
    return;
  }
  show(held_ + std::string(text.substr(0, last + 1)));
  held_ = text.substr(last + 1);
}

void AnswerPrinter::finish() {
  if (!output_->at_line_start() || !begun_) output_->write("\n");
}

void AnswerPrinter::show(std::string_view text) {
  if (output_->is_terminal()) {
    output_->write(wrap_.push(text, terminal_columns()));
  } else {
    output_->write(text);
  }
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

}  // namespace openelm::cli
