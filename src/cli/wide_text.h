#pragma once

#include <string>
#include <string_view>

namespace openelm::cli {

/// Makes the C library measure and print characters of UTF-8, whatever the locale is: LC_ALL=C too.
/// False if the system has no such locale.
bool use_utf8_characters();

/// Code points of UTF-8; bytes that are none become U+FFFD.
std::wstring to_wide(std::string_view text);
std::string to_utf8(std::wstring_view text);

/// Columns that a character takes on a terminal: 0, 1 or 2. Control characters: 0.
int columns_of(wchar_t character);

/// Where the user-perceived character begins that ends at `at`, and where that ends which begins at
/// `at`: accents, joined and tinted emoji, and pairs of regional letters belong together.
std::size_t previous_boundary(std::wstring_view text, std::size_t at);
std::size_t next_boundary(std::wstring_view text, std::size_t at);

}  // namespace openelm::cli
