#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <openelm/config.h>

namespace openelm::cli {

/// Bounds of a real option; `min_excluded`: the value must be greater than `min`.
struct RealRange {
  double min;
  double max;
  bool min_excluded = false;
};

/// Strict parsers for option values: the whole of `text` must be one finite number inside the
/// bounds. They throw UsageError with `flag` (as the user types it), the text and what is allowed.
std::int64_t parse_integer(std::string_view flag, std::string_view text, std::int64_t min,
                           std::int64_t max);
std::uint64_t parse_unsigned(std::string_view flag, std::string_view text);
/// Bytes: a whole number with K, M, G or T behind it for powers of 1024, or with nothing.
std::uint64_t parse_bytes(std::string_view flag, std::string_view text);
double parse_real(std::string_view flag, std::string_view text, const RealRange& range);

/// "13=-2.5" or "13=-inf": a token and what is added to its logit.
std::pair<TokenId, float> parse_bias(std::string_view flag, std::string_view text);

/// Numbers separated by blanks, line ends or commas; each between 0 and `max`.
std::vector<std::int32_t> parse_list(std::string_view flag, std::string_view text, std::int32_t min,
                                     std::int32_t max);

/// Throws UsageError unless every id is a row of a vocabulary of that size.
void require_in_vocabulary(std::string_view flag, const std::vector<TokenId>& ids,
                           std::int32_t vocab_size);

}  // namespace openelm::cli
