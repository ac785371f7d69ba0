#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/tokenizer.h>

#include "text/word_list_tokenizer.h"

namespace openelm {
namespace {

enum Id : TokenId {
  kBos,
  kEos,
  kHello,
  kSpace,
  kComma,
  kF0,
  k9F,
  k98,
  k80,
  kC3,
  kA9,
  kFF,
  kByteSpace,
  kByteA
};

const WordListTokenizer& tokenizer() {
  static const WordListTokenizer instance({"<s>", "</s>", "\u2581Hello", "\u2581", ",", "<0xF0>",
                                           "<0x9F>", "<0x98>", "<0x80>", "<0xC3>", "<0xA9>",
                                           "<0xFF>", "<0x20>", "<0x41>"});
  return instance;
}

std::vector<std::string> stream(std::vector<TokenId> ids, bool at_start) {
  StreamDecoder decoder(tokenizer(), at_start);
  std::vector<std::string> parts;
  for (const TokenId id : ids) parts.push_back(decoder.push(id));
  parts.push_back(decoder.finish());
  return parts;
}

using Parts = std::vector<std::string>;

TEST(StreamDecoder, OnlyTheUnfinishedCharacterIsHeldBack) {
  EXPECT_EQ(stream({kF0, k9F, k98, k80, kF0, k9F, k98, k80, kComma}, false),
            (Parts{"", "", "", "\U0001F600", "", "", "", "\U0001F600", ",", ""}))
      << "each character comes when it is whole, not when the run of them ends";
  EXPECT_EQ(stream({kHello, kC3, kA9}, false), (Parts{" Hello", "", "\u00E9", ""}));
}

TEST(StreamDecoder, BytesThatCannotBecomeACharacterPassAsTheyAre) {
  EXPECT_EQ(stream({kFF, k80}, false), (Parts{"\xFF", "\x80", ""}));
  EXPECT_EQ(stream({kF0, k9F, kComma}, false), (Parts{"", "", "\xF0\x9F,", ""}));
  EXPECT_EQ(stream({kF0, kF0, k9F}, false), (Parts{"", "\xF0", "", "\xF0\x9F"}));
}

TEST(StreamDecoder, AnUnfinishedCharacterComesAtTheEnd) {
  EXPECT_EQ(stream({kComma, kF0, k9F, k98}, false), (Parts{",", "", "", "", "\xF0\x9F\x98"}));
  StreamDecoder decoder(tokenizer(), false);
  decoder.push(kC3);
  EXPECT_EQ(decoder.finish(), "\xC3");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoder, ControlTokensDoNotInterruptACharacter) {
  EXPECT_EQ(stream({kC3, kEos, kA9}, false), (Parts{"", "", "\u00E9", ""}));
}

TEST(StreamDecoder, TheEncodersSpaceIsDroppedOnceAtTheStartOfAText) {
  EXPECT_EQ(stream({kHello, kHello}, true), (Parts{"Hello", " Hello", ""}));
  EXPECT_EQ(stream({kHello, kHello}, false), (Parts{" Hello", " Hello", ""}));
  EXPECT_EQ(stream({kBos, kHello}, true), (Parts{"", "Hello", ""})) << "control tokens are no text";
  EXPECT_EQ(stream({kSpace, kHello}, true), (Parts{"", " Hello", ""})) << "one space, not all";
  EXPECT_EQ(stream({kComma, kHello}, true), (Parts{",", " Hello", ""}));
  EXPECT_EQ(stream({kByteSpace, kHello}, true), (Parts{" ", " Hello", ""})) << "a byte is text";
  EXPECT_EQ(stream({kC3, kHello}, true), (Parts{"", "\xC3 Hello", ""}))
      << "a byte held back has begun the text";
}

TEST(StreamDecoder, DecodeIsTheStreamPutTogether) {
  const std::vector<std::vector<TokenId>> lists = {
      {},
      {kBos, kHello, kEos},
      {kSpace},
      {kHello, kF0, k9F},
      {kByteSpace, kByteA},
      {kFF, kF0, k9F, k98, k80, kComma, kSpace, kHello},
  };
  for (const auto& ids : lists) {
    std::string joined;
    for (const std::string& part : stream(ids, true)) joined += part;
    EXPECT_EQ(tokenizer().decode(ids), joined);
  }
  EXPECT_EQ(tokenizer().decode(lists[1]), "Hello");
  EXPECT_EQ(tokenizer().decode(lists[3]), "Hello\xF0\x9F");
}

TEST(StreamDecoder, NothingIsDroppedWhereTheEncoderAddsNoSpace) {
  class NoSpace final : public Tokenizer {
   public:
    std::int32_t vocab_size() const noexcept override { return tokenizer().vocab_size(); }
    TokenId bos_id() const noexcept override { return -1; }
    TokenId eos_id() const noexcept override { return -1; }
    bool adds_leading_space() const noexcept override { return false; }
    std::vector<TokenId> encode(std::string_view) const override { return {}; }
    std::vector<TokenId> encode_continuation(std::string_view) const override { return {}; }
    std::string_view piece(TokenId id) const override { return tokenizer().piece(id); }
    void append_bytes(TokenId id, std::string& out) const override {
      tokenizer().append_bytes(id, out);
    }
  };
  const NoSpace no_space;
  EXPECT_EQ(no_space.decode(std::vector<TokenId>{kHello}), " Hello");
  EXPECT_EQ(StreamDecoder(no_space, true).push(kHello), " Hello");
}

}  // namespace
}  // namespace openelm
