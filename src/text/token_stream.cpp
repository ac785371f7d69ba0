#include "text/token_stream.h"

#include <algorithm>
#include <array>
#include <utility>

#include <openelm/error.h>

#include "base/utf8.h"

namespace openelm {
namespace {

constexpr std::size_t kBlock = 1 << 16;
constexpr char32_t kSpaceMark = 0x2581;

/// The character at `at` of valid UTF-8, and its length.
std::pair<char32_t, std::size_t> character(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1FU) << 6 | (byte(1) & 0x3FU), 2};
  if (first < 0xF0) {
    return {(first & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU), 3};
  }
  return {
      (first & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU),
      4};
}

std::uint64_t pair_of(char32_t left, char32_t right) noexcept {
  return std::uint64_t{left} << 32 | right;
}

bool continues_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80;
}

bool is_space(char32_t c) noexcept {
  constexpr std::array<char32_t, 8> others = {' ',    0x85,   0xA0,   0x1680,
                                              0x202F, 0x205F, 0x3000, 0x2028};
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F) || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2029 || std::find(others.begin(), others.end(), c) != others.end();
}

/// Spaces are kept as they are, and characters outside of the vocabulary become bytes one by one.
bool keeps_every_byte(const Tokenizer& tokenizer) {
  constexpr std::string_view probe = "  a  b\n\x01\x02 ";
  std::string back;
  const std::vector<TokenId> ids = tokenizer.encode_continuation(probe);
  for (const TokenId id : ids) tokenizer.append_bytes(id, back);
  return back == probe;
}

}  // namespace

TextCuts::TextCuts(const Tokenizer& tokenizer) : possible_(keeps_every_byte(tokenizer)) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view piece = tokenizer.piece(id);
    if (piece.empty() || find_invalid_utf8(piece)) continue;
    auto [left, at] = character(piece, 0);
    while (at < piece.size()) {
      const auto [right, length] = character(piece, at);
      pairs_.push_back(pair_of(left, right));
      left = right;
      at += length;
    }
  }
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
}

bool TextCuts::together(char32_t left, char32_t right) const noexcept {
  const auto marked = [](char32_t c) { return c == ' ' ? kSpaceMark : c; };
  return std::binary_search(pairs_.begin(), pairs_.end(), pair_of(marked(left), marked(right)));
}

std::size_t TextCuts::last_cut(std::string_view text, std::size_t from) const noexcept {
  if (!possible_ || text.empty()) return 0;
  std::size_t right = text.size();
  const auto step_back = [&](std::size_t at) {
    do --at;
    while (continues_character(text[at]));
    return at;
  };
  right = step_back(right);
  while (right > 0 && right >= from) {
    const std::size_t left = step_back(right);
    if (!together(character(text, left).first, character(text, right).first)) return right;
    right = left;
  }
  return 0;
}

TokenStream::TokenStream(const Tokenizer& tokenizer, const TextCuts& cuts, Read read,
                         std::string name)
    : tokenizer_(&tokenizer), cuts_(&cuts), read_(std::move(read)), name_(std::move(name)) {}

std::vector<TokenId> TokenStream::next() {
  while (fill()) {
    const std::size_t cut = cuts_->last_cut(pending_, searched_);
    if (cut > 0) return encode(cut);
    searched_ = pending_.empty() ? 0 : pending_.size() - 1;
  }
  return encode(pending_.size());
}

bool TokenStream::fill() {
  if (ended_) return false;
  const std::size_t held = unchecked_.size();
  unchecked_.resize(held + kBlock);
  const std::size_t n = read_(std::span(unchecked_).subspan(held));
  unchecked_.resize(held + n);
  ended_ = n == 0;
  take_characters();
  return !ended_;
}

void TokenStream::take_characters() {
  const std::size_t length = ended_ ? unchecked_.size() : complete_utf8_prefix(unchecked_);
  std::string_view text = std::string_view(unchecked_).substr(0, length);
  if (const auto fault = find_invalid_utf8(text)) {
    throw Error(name_ + ": not valid UTF-8 at byte " +
                std::to_string(position_ + static_cast<std::int64_t>(*fault)));
  }
  if (!started_ && !text.empty()) {
    started_ = true;
    text = drop_byte_order_mark(text);
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, n] = character(text, at);
    const bool space = is_space(c);
    if (space && !in_space_) ++words_;
    in_space_ = space;
    at += n;
  }
  pending_ += text;
  position_ += static_cast<std::int64_t>(length);
  unchecked_.erase(0, length);
}

std::vector<TokenId> TokenStream::encode(std::size_t length) {
  if (length == 0) return {};
  const std::string_view text = std::string_view(pending_).substr(0, length);
  std::vector<TokenId> ids =
      encoded_ ? tokenizer_->encode_continuation(text) : tokenizer_->encode(text);
  encoded_ = true;
  pending_.erase(0, length);
  searched_ = 0;
  return ids;
}

}  // namespace openelm
