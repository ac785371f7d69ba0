#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/tokenizer.h>

namespace openelm {

/// Where a text may be cut so that its parts have the ids that they have in the whole: between two
/// characters that stand side by side in no piece of the vocabulary, for then no piece can span
/// them, and merges left and right of the cut have nothing to do with each other.
class TextCuts {
 public:
  explicit TextCuts(const Tokenizer& tokenizer);

  /// The last such place in `text` that is at least `from` and not at either end; 0: none.
  std::size_t last_cut(std::string_view text, std::size_t from) const noexcept;

 private:
  bool together(char32_t left, char32_t right) const noexcept;

  bool possible_;                     // this tokenizer's texts can be cut at all
  std::vector<std::uint64_t> pairs_;  // sorted: neighbours inside of pieces
};

/// The ids of a text that is read bit by bit: those of Tokenizer::encode of all of it, in flat
/// memory (unless it has nowhere a place to be cut). A byte-order mark in front is dropped.
class TokenStream {
 public:
  using Read = std::function<std::size_t(std::span<char> to)>;

  /// `name` stands in front of messages.
  TokenStream(const Tokenizer& tokenizer, const TextCuts& cuts, Read read, std::string name);

  /// The next ids; empty at the end. Throws Error where the text is not UTF-8.
  std::vector<TokenId> next();

  /// Runs of white space (as Python's \s has it) so far plus 1.
  std::int64_t words() const noexcept { return words_; }

 private:
  bool fill();
  void take_characters();
  std::vector<TokenId> encode(std::size_t length);

  const Tokenizer* tokenizer_;
  const TextCuts* cuts_;
  Read read_;
  std::string name_;
  std::string unchecked_;      // bytes of an unfinished character, then those just read
  std::string pending_;        // characters not yet encoded
  std::size_t searched_ = 0;   // of pending_, without a cut
  std::int64_t position_ = 0;  // of unchecked_ in the file
  std::int64_t words_ = 1;
  bool in_space_ = false;
  bool started_ = false;  // the first characters were looked at
  bool encoded_ = false;  // the text's first ids are out
  bool ended_ = false;
};

}  // namespace openelm
