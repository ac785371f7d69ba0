#include <utility>

#include <openelm/tokenizer.h>

#include "base/utf8.h"

namespace openelm {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

/// Appends the bytes of `id`. While `drop_space` is set nothing has been written yet, and the first
/// piece that is not a control token decides: if it opens with U+2581, that is the space the
/// encoder put there. A byte piece <0x20> is a space of the text itself and stays.
void append_dropping_space(const Tokenizer& tokenizer, TokenId id, bool& drop_space,
                           std::string& out) {
  const std::size_t before = out.size();
  tokenizer.append_bytes(id, out);
  if (!drop_space || out.size() == before) return;
  drop_space = false;
  if (tokenizer.piece(id).starts_with(kSpaceMark)) out.erase(before, 1);
}

}  // namespace

std::string Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string text;
  bool drop_space = adds_leading_space();
  for (const TokenId id : ids) append_dropping_space(*this, id, drop_space, text);
  return text;
}

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, bool at_start)
    : tokenizer_(&tokenizer), drop_space_(at_start && tokenizer.adds_leading_space()) {}

std::string StreamDecoder::push(TokenId id) {
  append_dropping_space(*tokenizer_, id, drop_space_, held_);
  std::string unfinished = held_.substr(complete_utf8_prefix(held_));
  held_.resize(held_.size() - unfinished.size());
  return std::exchange(held_, std::move(unfinished));
}

std::string StreamDecoder::finish() { return std::exchange(held_, {}); }

}  // namespace openelm
