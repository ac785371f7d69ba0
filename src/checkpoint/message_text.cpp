#include "checkpoint/message_text.h"

#include <cstdio>

#include "base/utf8.h"

namespace openelm {

std::string printable(std::string_view text, std::size_t limit) {
  const bool cut = text.size() > limit;
  if (cut) text = text.substr(0, complete_utf8_prefix(text.substr(0, limit)));
  std::string out;
  for (const char c : replace_invalid_utf8(text)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
      continue;
    }
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\x%02X", byte);
    out += escape;
  }
  return cut ? out + "..." : out;
}

std::string in_quotes(std::string_view text) { return '"' + printable(text) + '"'; }

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t kMostShown = 8;
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == kMostShown) {
      out += "...";
      break;
    }
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

}  // namespace openelm
