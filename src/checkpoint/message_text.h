#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace openelm {

/// `text` from a file, made fit for an error message: control characters escaped, undecodable bytes
/// replaced, cut after `limit` bytes.
std::string printable(std::string_view text, std::size_t limit = 160);

/// printable(text) in double quotes.
std::string in_quotes(std::string_view text);

/// "[3072, 1280]"
std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace openelm
