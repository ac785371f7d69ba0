#include "base/utf8.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <openelm/error.h>

namespace openelm {
namespace {

/// The encoding of any code point, surrogates and values past U+10FFFF too.
std::string encode(std::uint32_t c) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto tail = [&](int shift) { return byte(0x80U | ((c >> shift) & 0x3FU)); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xC0U | (c >> 6)), tail(0)};
  if (c < 0x10000) return {byte(0xE0U | (c >> 12)), tail(6), tail(0)};
  return {byte(0xF0U | (c >> 18)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCodePointIsValidExceptSurrogatesAndThosePastTheLast) {
  for (std::uint32_t c = 0; c < 0x120000; ++c) {
    const bool valid = c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
    ASSERT_EQ(find_invalid_utf8(encode(c)), valid ? std::nullopt : std::optional<std::size_t>(0))
        << std::hex << c;
  }
}

TEST(Utf8, ProperPrefixesAreInvalidButUnfinished) {
  for (const std::uint32_t c : {0x80U, 0x7FFU, 0x800U, 0xD7FFU, 0xFFFFU, 0x10000U, 0x10FFFFU}) {
    const std::string whole = encode(c);
    for (std::size_t n = 1; n < whole.size(); ++n) {
      const std::string text = "a\u00E9" + whole.substr(0, n);
      EXPECT_EQ(find_invalid_utf8(text), 3U) << std::hex << c;
      EXPECT_EQ(complete_utf8_prefix(text), 3U) << std::hex << c;
    }
    EXPECT_EQ(complete_utf8_prefix(whole), whole.size());
  }
}

TEST(Utf8, InvalidFormsAreFoundWhereTheyBegin) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8(std::string("a\0b", 3)), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("ab\xC0\xAF"), 2U) << "overlong";
  EXPECT_EQ(find_invalid_utf8("ab\xE0\x80\xAF"), 2U) << "overlong";
  EXPECT_EQ(find_invalid_utf8("\xF0\x8F\xBF\xBF"), 0U) << "overlong";
  EXPECT_EQ(find_invalid_utf8("\u00E9\x80"), 2U) << "continuation alone";
  EXPECT_EQ(find_invalid_utf8("\xE2\x82z"), 0U) << "cut by an ordinary byte";
  EXPECT_EQ(find_invalid_utf8("x\xFF"), 1U);
  EXPECT_EQ(find_invalid_utf8("x\xF5\x80\x80\x80"), 1U);
}

TEST(Utf8, BytesThatCannotBeginACharacterAreNotHeldBack) {
  EXPECT_EQ(complete_utf8_prefix(""), 0U);
  EXPECT_EQ(complete_utf8_prefix("abc"), 3U);
  EXPECT_EQ(complete_utf8_prefix("a\x80"), 2U);
  EXPECT_EQ(complete_utf8_prefix("a\xFF"), 2U);
  EXPECT_EQ(complete_utf8_prefix("a\xED\xA0"), 3U) << "a surrogate is never finished";
  EXPECT_EQ(complete_utf8_prefix("a\xF4\x90"), 3U) << "past U+10FFFF";
  EXPECT_EQ(complete_utf8_prefix("a\xE0\x80"), 3U) << "overlong";
  EXPECT_EQ(complete_utf8_prefix("\xF0\x9F\xF0\x9F\x98"), 2U) << "only the last one can go on";
  EXPECT_EQ(complete_utf8_prefix("\xF0\x9F\x98\x80\x80"), 5U);
}

TEST(Utf8, EveryUndecodableByteIsReplaced) {
  EXPECT_EQ(replace_invalid_utf8("a\u00E9\u20AC\U0001F600"), "a\u00E9\u20AC\U0001F600");
  EXPECT_EQ(replace_invalid_utf8("a\xF0\x9F\x98"), "a\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82z\xFF"), "\uFFFD\uFFFDz\uFFFD");
  EXPECT_EQ(replace_invalid_utf8(std::string("\0\x80", 2)), std::string("\0\uFFFD", 4));
}

TEST(Utf8, OneByteOrderMarkIsDropped) {
  EXPECT_EQ(drop_byte_order_mark("\uFEFFtext"), "text");
  EXPECT_EQ(drop_byte_order_mark("\uFEFF\uFEFFtext"), "\uFEFFtext");
  EXPECT_EQ(drop_byte_order_mark("te\uFEFFxt"), "te\uFEFFxt");
  EXPECT_EQ(drop_byte_order_mark("\xEF\xBB"), "\xEF\xBB");
  EXPECT_EQ(drop_byte_order_mark(""), "");
}

TEST(Utf8, TheErrorNamesThePlaceAndTheByte) {
  EXPECT_NO_THROW(require_utf8("\u00E9", "prompt"));
  try {
    require_utf8("ab\xFF", "prompt.txt");
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "prompt.txt: not valid UTF-8 at byte 2");
  }
}

}  // namespace
}  // namespace openelm
