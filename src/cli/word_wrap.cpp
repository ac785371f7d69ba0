#include "cli/word_wrap.h"

#include "cli/wide_text.h"

namespace openelm::cli {
namespace {

constexpr int kTab = 8;
constexpr wchar_t kControlPictures = 0x2400;
constexpr wchar_t kDelete = 0x7F;
constexpr wchar_t kDeletePicture = 0x2421;
constexpr wchar_t kReplacement = 0xFFFD;

/// What stands for a character that would steer the terminal.
wchar_t visible(wchar_t c) {
  if (c < 0x20) return kControlPictures + c;
  if (c == kDelete) return kDeletePicture;
  return c > kDelete && c < 0xA0 ? kReplacement : c;
}

}  // namespace

std::string WordWrap::push(std::string_view text, int columns) {
  std::string out;
  for (const wchar_t c : to_wide(text)) {
    if (c == L'\n') {
      reset();
      out += '\n';
    } else if (c == L' ' || c == L'\t') {
      const int width = c == L' ' ? 1 : kTab - column_ % kTab;
      word_.clear();
      word_columns_ = 0;
      if (columns > 0 && column_ + width >= columns) {
        // The line end takes the blank's place.
        column_ = 0;
        out += '\n';
      } else {
        column_ += width;
        out += static_cast<char>(c);
      }
    } else {
      put(visible(c), columns, out);
    }
  }
  return out;
}

void WordWrap::put(wchar_t c, int columns, std::string& out) {
  const int width = columns_of(c);
  // The last column stays free: what terminals do there differs.
  if (columns > 0 && width > 0 && column_ + width >= columns) {
    // Wide characters, those of Chinese and Japanese, and words longer than a line break anywhere.
    if (width == 2 || word_columns_ + width >= columns) {
      out += '\n';
      reset();
    } else {
      move_word(out);
    }
  }
  column_ += width;
  out += to_utf8({&c, 1});
  if (width == 2) {
    word_.clear();
    word_columns_ = 0;
  } else {
    word_ += c;
    word_columns_ += width;
  }
}

void WordWrap::move_word(std::string& out) {
  const auto width = static_cast<std::size_t>(word_columns_);
  out += std::string(width, '\b') + std::string(width, ' ') + '\n' + to_utf8(word_);
  column_ = word_columns_;
}

void WordWrap::reset() {
  column_ = 0;
  word_columns_ = 0;
  word_.clear();
}

}  // namespace openelm::cli
