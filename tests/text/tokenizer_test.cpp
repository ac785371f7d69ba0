#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <openelm/error.h>
#include <openelm/tokenizer.h>

#include "text/temporary_file.h"

namespace openelm {
namespace {

using Ids = std::vector<TokenId>;

const std::filesystem::path kModel = OPENELM_MODELS "/openelm-tiny/tokenizer.model";

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

const Tokenizer& tiny() {
  static const auto tokenizer = Tokenizer::load(kModel);
  return *tokenizer;
}

std::string case_text(const std::string& name) {
  return read(std::filesystem::path(OPENELM_TEST_DATA) / "cases" / name);
}

std::string load_fault(const std::filesystem::path& path) {
  try {
    Tokenizer::load(path);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

bool contains(const Ids& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

TEST(Tokenizer, KnowsItsVocabulary) {
  EXPECT_EQ(tiny().vocab_size(), 4096);
  EXPECT_EQ(tiny().bos_id(), 1);
  EXPECT_EQ(tiny().eos_id(), 2);
  EXPECT_TRUE(tiny().adds_leading_space());
  EXPECT_EQ(tiny().piece(0), "<unk>");
  EXPECT_EQ(tiny().piece(1), "<s>");
  EXPECT_EQ(tiny().piece(13), "<0x0A>");
  EXPECT_EQ(tiny().piece(4001), "\u2581");
}

TEST(Tokenizer, IdsOutOfRangeAreErrors) {
  std::string out;
  for (const TokenId id : {-1, 4096, 2147483647, -2147483647 - 1}) {
    EXPECT_THROW(tiny().piece(id), Error) << id;
    EXPECT_THROW(tiny().append_bytes(id, out), Error) << id;
    EXPECT_THROW(tiny().decode(Ids{id}), Error) << id;
  }
  try {
    tiny().piece(4096);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "token id 4096 is outside the tokenizer's vocabulary of 4096");
  }
}

TEST(Tokenizer, EmptyTextHasNoTokens) {
  EXPECT_EQ(tiny().encode(""), Ids{});
  EXPECT_EQ(tiny().encode_continuation(""), Ids{});
  EXPECT_EQ(tiny().decode({}), "");
}

TEST(Tokenizer, AContinuationHasNoSpaceInFront) {
  const std::string text = "Paris";
  const Ids whole = tiny().encode(text);
  const Ids continuation = tiny().encode_continuation(text);
  EXPECT_EQ(tiny().piece(whole.front()).substr(0, 3), "\u2581");
  EXPECT_NE(tiny().piece(continuation.front()).substr(0, 3), "\u2581");
  std::string bytes;
  for (const TokenId id : continuation) tiny().append_bytes(id, bytes);
  EXPECT_EQ(bytes, text);
  EXPECT_EQ(tiny().encode_continuation(" " + text), whole) << "its own space stays, and only that";
}

TEST(Tokenizer, ATextInTwoPartsIsTheTextWhole) {
  const std::string a = case_text("b17_join_a.txt");
  const std::string b = case_text("b17_join_b.txt");
  Ids joined = tiny().encode(a);
  for (const TokenId id : tiny().encode_continuation(b)) joined.push_back(id);
  EXPECT_EQ(joined, tiny().encode(a + b));
  EXPECT_EQ(tiny().decode(joined), a + b);
  EXPECT_EQ(tiny().encode(case_text("b17_trailing_space.txt")).back(), 4001);
}

TEST(Tokenizer, ControlTokensInTextAreText) {
  for (const std::string text : {"<s>", "</s>", "<unk>", "<0x0A>", "a<s>b</s>c <s> <0x41>"}) {
    for (const Ids& ids : {tiny().encode(text), tiny().encode_continuation(text)}) {
      for (const TokenId special : {0, 1, 2, 13, 68}) {
        EXPECT_FALSE(contains(ids, special)) << text << " has " << special;
      }
    }
    EXPECT_EQ(tiny().decode(tiny().encode(text)), text);
  }
  EXPECT_FALSE(contains(tiny().encode(case_text("b15_bos_text.txt")), 1));
  EXPECT_FALSE(contains(tiny().encode(case_text("b16_eos_text.txt")), 2));
}

TEST(Tokenizer, NulIsTextLikeAnyOther) {
  const std::string text("a\0b", 3);
  EXPECT_EQ(tiny().encode(text), (Ids{261, 3, 4021}));
  EXPECT_EQ(tiny().decode(tiny().encode(text)), text);
  const std::string file = case_text("b19_nul.bin");
  EXPECT_TRUE(contains(tiny().encode(file), 3));
  EXPECT_EQ(tiny().decode(tiny().encode(file)), file) << "what follows the NUL is not lost";
}

TEST(Tokenizer, LineEndsStayAsTheyAre) {
  const std::string crlf = case_text("b21_crlf.txt");
  EXPECT_EQ(tiny().decode(tiny().encode(crlf)), crlf);
  EXPECT_NE(tiny().encode(crlf), tiny().encode(case_text("b21_lf.txt")));
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefusedWithTheByte) {
  for (const std::string text : {"abc\xFF", "abc\xC0\xAF", "abc\xED\xA0\x80", "abc\xF0\x9F"}) {
    try {
      tiny().encode(text);
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "text: not valid UTF-8 at byte 3");
    }
    EXPECT_THROW(tiny().encode_continuation(text), Error);
  }
}

TEST(Tokenizer, TheStreamOfAnyIdsIsTheirDecodingAndEveryCutIsWholeCharacters) {
  std::mt19937 rng(11);
  for (int round = 0; round < 500; ++round) {
    const TokenId bound = round % 2 == 0 ? 300 : tiny().vocab_size();  // half of them: mostly bytes
    Ids ids(std::uniform_int_distribution<std::size_t>(0, 20)(rng));
    for (TokenId& id : ids) id = std::uniform_int_distribution<TokenId>(0, bound - 1)(rng);
    StreamDecoder decoder(tiny(), true);
    std::string joined;
    for (const TokenId id : ids) joined += decoder.push(id);
    joined += decoder.finish();
    ASSERT_EQ(joined, tiny().decode(ids));
  }
}

TEST(Tokenizer, EmojiStreamCharacterByCharacter) {
  const std::string text = case_text("b01_emoji.txt");
  StreamDecoder decoder(tiny(), true);
  std::string joined;
  int emoji = 0;
  for (const TokenId id : tiny().encode(text)) {
    const std::string part = decoder.push(id);
    EXPECT_LE(part.size(), 16U);
    emoji += part == "\U0001F638" ? 1 : 0;
    joined += part;
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(decoder.finish(), "");
  EXPECT_GE(emoji, 6) << "each comes alone, when its last byte does";
}

TEST(Tokenizer, IsSharedBetweenThreads) {
  const std::string text = case_text("b36_two_windows.txt");
  const Ids whole = tiny().encode(text);
  const Ids continuation = tiny().encode_continuation(text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4, 0);
  for (int& result : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        result += tiny().encode(text) == whole && tiny().encode_continuation(text) == continuation;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(equal, std::vector<int>(4, 20));
}

TEST(TokenizerFile, FaultsAreOneLineThatNamesTheFile) {
  testing::internal::CaptureStderr();
  const std::string model = read(kModel);
  const std::vector<std::pair<std::string, std::string>> faults = {
      {"", "empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"},
      {"<!doctype html>\n<title>Sign in</title>", "web page"},
      {"{}", "JSON"},
      {"Entry not found", "not a SentencePiece model"},
      {model.substr(0, model.size() / 2), "cut short"},
      {model.substr(0, model.size() - 1), "cut short"},
      {std::string("\x0A\x00\x12\x00\x1A\x00", 6), "not a usable SentencePiece model"},
      {std::string("\x0A\x07\x0A\x03\x1B\n\xFF\x18\x06\x12\x03\xC0\x02\x01\x1A\x00", 16),
       "byte piece ??\uFFFD is found"},
  };
  for (const auto& [contents, expected] : faults) {
    const TemporaryFile file("tokenizer.model", contents);
    const std::string message = load_fault(file.path());
    EXPECT_NE(message.find(file.path().string()), std::string::npos) << message;
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  EXPECT_NE(load_fault("/nonexistent/tokenizer.model").find("/nonexistent/tokenizer.model"),
            std::string::npos);
  EXPECT_NE(load_fault(kModel.parent_path()), "") << "a folder";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "the library keeps quiet";
}

TEST(TokenizerFile, DamageIsRefusedOrHarmless) {
  testing::internal::CaptureStderr();
  const std::string model = read(kModel);
  std::mt19937 rng(3);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string damaged = model;
    for (int i = 0; i < 1 + round % 20; ++i) {
      const auto at = std::uniform_int_distribution<std::size_t>(0, model.size() - 1)(rng);
      damaged[at] = static_cast<char>(std::uniform_int_distribution<int>(0, 255)(rng));
    }
    const TemporaryFile file("tokenizer.model", damaged);
    try {
      const auto tokenizer = Tokenizer::load(file.path());
      tokenizer->decode(tokenizer->encode("Once upon a time, \u00E9\U0001F600 <s>\n"));
      for (TokenId id = 0; id < tokenizer->vocab_size(); ++id) tokenizer->decode(Ids{id});
    } catch (const Error& error) {
      ++refused;
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "the library keeps quiet";
}

TEST(TokenizerFile, PathsMayHoldSpacesAndAnyLetters) {
  const TemporaryFile file("mod\u00E8le \u6A21\u578B.model", read(kModel));
  EXPECT_EQ(Tokenizer::load(file.path())->vocab_size(), 4096);
}

}  // namespace
}  // namespace openelm
