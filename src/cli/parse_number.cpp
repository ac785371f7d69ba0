#include "cli/parse_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include <openelm/error.h>

namespace openelm::cli {
namespace {

[[noreturn]] void fail(std::string_view flag, std::string_view text, const std::string& what) {
  throw UsageError(std::string(flag) + ": '" + std::string(text) + "' " + what);
}

std::string shortest(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string describe(const RealRange& range) {
  const bool bounded = range.max < std::numeric_limits<float>::max();
  if (range.min_excluded) {
    return "more than " + shortest(range.min) + (bounded ? ", at most " + shortest(range.max) : "");
  }
  if (range.min <= std::numeric_limits<float>::lowest()) return "any finite number";
  return bounded ? shortest(range.min) + " to " + shortest(range.max)
                 : shortest(range.min) + " or more";
}

template <typename Integer>
Integer parse_digits(std::string_view flag, std::string_view text, const std::string& allowed) {
  Integer value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc::result_out_of_range) fail(flag, text, "is out of range: " + allowed);
  if (status != std::errc() || end != text.data() + text.size()) {
    fail(flag, text, "is not a whole number: " + allowed);
  }
  return value;
}

}  // namespace

std::int64_t parse_integer(std::string_view flag, std::string_view text, std::int64_t min,
                           std::int64_t max) {
  const std::string allowed = std::to_string(min) + " to " + std::to_string(max);
  const auto value = parse_digits<std::int64_t>(flag, text, allowed);
  if (value < min || value > max) fail(flag, text, "is out of range: " + allowed);
  return value;
}

std::uint64_t parse_unsigned(std::string_view flag, std::string_view text) {
  return parse_digits<std::uint64_t>(
      flag, text, "0 to " + std::to_string(std::numeric_limits<std::uint64_t>::max()));
}

std::uint64_t parse_bytes(std::string_view flag, std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  const std::string allowed = "a number of bytes, such as 512M or 4G";
  int power = 0;
  std::string_view digits = text;
  if (!text.empty() && kUnits.find(text.back()) != std::string_view::npos) {
    power = static_cast<int>(kUnits.find(text.back())) + 1;
    digits.remove_suffix(1);
  }
  const auto value = parse_digits<std::uint64_t>(flag, digits, allowed);
  if (value > (std::numeric_limits<std::uint64_t>::max() >> (10 * power))) {
    fail(flag, text, "is out of range: " + allowed);
  }
  return value << (10 * power);
}

double parse_real(std::string_view flag, std::string_view text, const RealRange& range) {
  // strtod alone would take leading blanks, hexadecimal, "inf" and "nan".
  const bool plain = text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  const std::string copy(text);
  char* end = nullptr;
  const double value = plain && !text.empty() ? std::strtod(copy.c_str(), &end) : 0.0;
  if (end == nullptr || end != copy.c_str() + copy.size()) {
    fail(flag, text, "is not a finite number: " + describe(range));
  }
  const bool below = range.min_excluded ? value <= range.min : value < range.min;
  if (below || value > range.max || !std::isfinite(value)) {
    fail(flag, text, "is out of range: " + describe(range));
  }
  return value;
}

std::pair<TokenId, float> parse_bias(std::string_view flag, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    throw UsageError(std::string(flag) + ": '" + std::string(text) +
                     "' is not ID=B, such as 13=-2.5 or 13=-inf");
  }
  const auto id = static_cast<TokenId>(
      parse_integer(flag, text.substr(0, equals), 0, std::numeric_limits<TokenId>::max()));
  constexpr double max = std::numeric_limits<float>::max();
  const std::string_view bias = text.substr(equals + 1);
  if (bias == "-inf") return {id, -std::numeric_limits<float>::infinity()};
  return {id, static_cast<float>(parse_real(flag, bias, {-max, max}))};
}

std::vector<std::int32_t> parse_list(std::string_view flag, std::string_view text, std::int32_t min,
                                     std::int32_t max) {
  constexpr std::string_view separators = " ,\t\r\n";
  std::vector<std::int32_t> values;
  std::size_t begin = text.find_first_not_of(separators);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    values.push_back(static_cast<std::int32_t>(parse_integer(flag, word, min, max)));
    begin = text.find_first_not_of(separators, end);
  }
  return values;
}

void require_in_vocabulary(std::string_view flag, const std::vector<TokenId>& ids,
                           std::int32_t vocab_size) {
  for (const TokenId id : ids) {
    if (id >= vocab_size) {
      throw UsageError(std::string(flag) + ": id " + std::to_string(id) +
                       " is outside the model's vocabulary, 0 to " +
                       std::to_string(vocab_size - 1));
    }
  }
}

}  // namespace openelm::cli
