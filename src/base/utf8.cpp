#include "base/utf8.h"

#include <algorithm>

#include <openelm/error.h>

namespace openelm {
namespace {

struct ByteRange {
  unsigned char low;
  unsigned char high;

  bool contains(unsigned char byte) const noexcept { return byte >= low && byte <= high; }
};

/// What a lead byte promises, after table 3-7 of the Unicode standard. Overlong forms, surrogates
/// and code points past U+10FFFF all show in the second byte; any later byte is 80..BF.
struct Lead {
  std::size_t length;  // 0: the byte begins no character
  ByteRange second;
};

constexpr ByteRange kContinuation{0x80, 0xBF};

constexpr Lead classify(unsigned char byte) noexcept {
  if (byte < 0x80) return {1, kContinuation};
  if (byte < 0xC2) return {0, kContinuation};
  if (byte < 0xE0) return {2, kContinuation};
  if (byte == 0xE0) return {3, {0xA0, 0xBF}};
  if (byte == 0xED) return {3, {0x80, 0x9F}};
  if (byte < 0xF0) return {3, kContinuation};
  if (byte == 0xF0) return {4, {0x90, 0xBF}};
  if (byte < 0xF4) return {4, kContinuation};
  if (byte == 0xF4) return {4, {0x80, 0x8F}};
  return {0, kContinuation};
}

/// The beginning of a text: `length` bytes are a whole character, or they are the valid but
/// unfinished beginning of one, which only the end of the text can leave.
struct Step {
  std::size_t length;  // 0: the first byte is not part of any character
  bool complete;
};

Step first_character(std::string_view text) noexcept {
  const Lead lead = classify(static_cast<unsigned char>(text.front()));
  const std::size_t available = std::min(lead.length, text.size());
  for (std::size_t i = 1; i < available; ++i) {
    const ByteRange range = i == 1 ? lead.second : kContinuation;
    if (!range.contains(static_cast<unsigned char>(text[i]))) return {0, false};
  }
  return {available, available == lead.length};
}

}  // namespace

std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const Step step = first_character(text.substr(at));
    if (step.length == 0 || !step.complete) return at;
    at += step.length;
  }
  return std::nullopt;
}

std::size_t complete_utf8_prefix(std::string_view text) noexcept {
  constexpr std::size_t longest_tail = 3;
  const std::size_t reach = std::min(text.size(), longest_tail);
  for (std::size_t at = text.size() - reach; at < text.size(); ++at) {
    const Step step = first_character(text.substr(at));
    if (step.length > 0 && !step.complete) return at;
  }
  return text.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Step step = first_character(text.substr(at));
    if (step.length > 0 && step.complete) {
      valid.append(text, at, step.length);
      at += step.length;
    } else {
      valid.append("\uFFFD");
      ++at;
    }
  }
  return valid;
}

std::string_view drop_byte_order_mark(std::string_view text) noexcept {
  constexpr std::string_view mark = "\uFEFF";
  if (text.starts_with(mark)) text.remove_prefix(mark.size());
  return text;
}

void require_utf8(std::string_view text, std::string_view where) {
  const std::optional<std::size_t> at = find_invalid_utf8(text);
  if (!at) return;
  throw Error(std::string(where) + ": not valid UTF-8 at byte " + std::to_string(*at));
}

}  // namespace openelm
