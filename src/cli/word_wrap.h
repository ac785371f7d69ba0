#pragma once

#include <string>
#include <string_view>

namespace openelm::cli {

/// Lays out text that comes in pieces for a terminal: nothing is held back, and a word that turns
/// out not to fit moves to the next line. It does so with backspaces and blanks alone. Control
/// characters of the text are replaced by visible signs.
class WordWrap {
 public:
  /// What to write for the next `text`, whole characters, on a terminal of so many columns; 0: no
  /// wrapping.
  std::string push(std::string_view text, int columns);

  /// The next text begins a line.
  void reset();

 private:
  void put(wchar_t c, int columns, std::string& out);
  void move_word(std::string& out);

  int column_ = 0;
  int word_columns_ = 0;  // of the word at the line's end
  std::wstring word_;
};

}  // namespace openelm::cli
