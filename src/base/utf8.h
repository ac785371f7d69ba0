#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace openelm {

/// Offset of the first byte that is not part of valid UTF-8 (overlong forms, surrogates and code
/// points past U+10FFFF are invalid), or nothing.
std::optional<std::size_t> find_invalid_utf8(std::string_view text) noexcept;

/// Length of the longest prefix of `text` that does not end inside a character: bytes that could
/// still begin one (at most 3) are left out; bytes that cannot are kept.
std::size_t complete_utf8_prefix(std::string_view text) noexcept;

/// `text` with every undecodable byte replaced by U+FFFD, for output that must be valid (JSON).
std::string replace_invalid_utf8(std::string_view text);

/// `text` without a leading byte-order mark.
std::string_view drop_byte_order_mark(std::string_view text) noexcept;

/// Throws Error "<where>: not valid UTF-8 at byte N" unless `text` is valid.
void require_utf8(std::string_view text, std::string_view where);

}  // namespace openelm
