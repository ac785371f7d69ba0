#include "cli/wide_text.h"

#include <algorithm>
#include <clocale>
#include <cstdint>
#include <cwchar>

#include <langinfo.h>

#include "base/utf8.h"

namespace openelm::cli {
namespace {

constexpr wchar_t kZeroWidthJoiner = 0x200D;

bool is_regional(wchar_t c) { return c >= 0x1F1E6 && c <= 0x1F1FF; }
bool is_skin_tone(wchar_t c) { return c >= 0x1F3FB && c <= 0x1F3FF; }

/// The character at `at` belongs to the one before it.
bool continues(std::wstring_view text, std::size_t at) {
  const wchar_t here = text[at];
  const wchar_t before = text[at - 1];
  if (here < 0x20 || before < 0x20) return false;
  if (before == kZeroWidthJoiner || is_skin_tone(here) || ::wcwidth(here) == 0) return true;
  if (!is_regional(here)) return false;
  // Letters of flags go in pairs from the first of them.
  std::size_t letters = 0;
  while (letters < at && is_regional(text[at - 1 - letters])) ++letters;
  return letters % 2 == 1;
}

}  // namespace

bool use_utf8_characters() {
  for (const char* locale : {"", "C.UTF-8", "en_US.UTF-8"}) {
    if (std::setlocale(LC_CTYPE, locale) != nullptr &&
        std::string_view(::nl_langinfo(CODESET)) == "UTF-8") {
      return true;
    }
  }
  return false;
}

std::wstring to_wide(std::string_view text) {
  const std::string valid = replace_invalid_utf8(text);
  std::wstring wide;
  for (std::size_t i = 0; i < valid.size();) {
    const auto lead = static_cast<unsigned char>(valid[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    auto code = static_cast<std::uint32_t>(length == 1 ? lead : lead & (0xFFU >> (length + 1)));
    for (std::size_t k = 1; k < length; ++k) {
      code = code << 6 | (static_cast<unsigned char>(valid[i + k]) & 0x3FU);
    }
    wide += static_cast<wchar_t>(code);
    i += length;
  }
  return wide;
}

std::string to_utf8(std::wstring_view text) {
  std::string bytes;
  const auto add = [&bytes](std::uint32_t byte) { bytes += static_cast<char>(byte); };
  for (const wchar_t c : text) {
    const auto code = static_cast<std::uint32_t>(c);
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xC0 | code >> 6);
      add(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      add(0xE0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
      add(0x80 | (code >> 6 & 0x3F));
      add(0x80 | (code & 0x3F));
    }
  }
  return bytes;
}

int columns_of(wchar_t character) { return std::max(::wcwidth(character), 0); }

std::size_t previous_boundary(std::wstring_view text, std::size_t at) {
  if (at == 0) return 0;
  --at;
  while (at > 0 && continues(text, at)) --at;
  return at;
}

std::size_t next_boundary(std::wstring_view text, std::size_t at) {
  if (at == text.size()) return at;
  ++at;
  while (at < text.size() && continues(text, at)) ++at;
  return at;
}

}  // namespace openelm::cli
