#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <openelm/tokenizer.h>

#include "base/utf8.h"

// The answers of the sentencepiece library's Python package: for Llama 2's tokenizer, where its
// file is at hand, and for the bundled one, always (tests/data/tokenizer/make_tiny.py).

namespace openelm {
namespace {

using Ids = std::vector<TokenId>;
using Json = nlohmann::json;

const std::filesystem::path kData = OPENELM_TEST_DATA;

Json read_json(const std::filesystem::path& path) { return Json::parse(std::ifstream(path)); }

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

void check_encoding(const Tokenizer& tokenizer, const Json& golden) {
  ASSERT_GE(golden["cases"].size(), 200U);
  for (const Json& example : golden["cases"]) {
    const std::string hex = example["utf8_hex"];
    const Ids ids = example["ids"];
    const std::string text = from_hex(hex);
    EXPECT_EQ(tokenizer.encode(text), ids) << hex;
    if (example.contains("continuation_ids")) {
      EXPECT_EQ(tokenizer.encode_continuation(text), example["continuation_ids"].get<Ids>()) << hex;
    }
    if (example.contains("decoded")) {
      const std::string decoded =
          example["decoded"].is_null() ? text : example["decoded"].get<std::string>();
      EXPECT_EQ(tokenizer.decode(ids), decoded) << hex;
    }
  }
}

void check_decoding(const Tokenizer& tokenizer, const Json& golden) {
  ASSERT_GE(golden["cases"].size(), 100U);
  for (const Json& example : golden["cases"]) {
    const Ids ids = example["ids"];
    const std::string bytes = from_hex(example["bytes_hex"]);
    EXPECT_EQ(tokenizer.decode(ids), bytes) << example;
    if (example.contains("text")) {
      EXPECT_EQ(replace_invalid_utf8(tokenizer.decode(ids)), example["text"]) << example;
    }
    StreamDecoder decoder(tokenizer, true);
    std::string streamed;
    for (const TokenId id : ids) streamed += decoder.push(id);
    EXPECT_EQ(streamed + decoder.finish(), bytes) << example;
  }
}

void check_case_files(const Tokenizer& tokenizer, const Json& expected) {
  int files = 0;
  for (const auto& [name, value] : expected.items()) {
    if (name.starts_with("_")) continue;
    std::ifstream file(kData / "cases" / name, std::ios::binary);
    const Ids ids = tokenizer.encode(std::string(std::istreambuf_iterator<char>(file), {}));
    EXPECT_EQ(ids.size(), value["n"].get<std::size_t>()) << name;
    if (value["ids"].is_array()) {
      EXPECT_EQ(ids, value["ids"].get<Ids>()) << name;
    } else {
      ASSERT_GE(ids.size(), 8U) << name;
      EXPECT_EQ(Ids(ids.begin(), ids.begin() + 8), value["ids"]["first"].get<Ids>()) << name;
      EXPECT_EQ(Ids(ids.end() - 8, ids.end()), value["ids"]["last"].get<Ids>()) << name;
    }
    ++files;
  }
  EXPECT_GE(files, 18);
}

class BundledTokenizer : public testing::Test {
 protected:
  const std::shared_ptr<const Tokenizer> tokenizer_ =
      Tokenizer::load(OPENELM_MODELS "/openelm-tiny/tokenizer.model");
};

TEST_F(BundledTokenizer, Encodes) {
  check_encoding(*tokenizer_, read_json(kData / "tokenizer/tiny_encode.json"));
}

TEST_F(BundledTokenizer, Decodes) {
  check_decoding(*tokenizer_, read_json(kData / "tokenizer/tiny_decode.json"));
}

TEST_F(BundledTokenizer, EncodesTheCaseFiles) {
  check_case_files(*tokenizer_, read_json(kData / "tokenizer/tiny_cases.json"));
}

class LlamaTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("OPENELM_LLAMA_TOKENIZER");
    if (path == nullptr) {
      GTEST_SKIP() << "OPENELM_LLAMA_TOKENIZER does not name Llama 2's tokenizer.model";
    }
    tokenizer_ = Tokenizer::load(path);
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(LlamaTokenizer, HasTheVocabularyOfOpenElm) {
  EXPECT_EQ(tokenizer_->vocab_size(), 32000);
  EXPECT_EQ(tokenizer_->bos_id(), 1);
  EXPECT_EQ(tokenizer_->eos_id(), 2);
}

TEST_F(LlamaTokenizer, Encodes) {
  check_encoding(*tokenizer_, read_json(kData / "tokenizer/tokenizer_encode.json"));
}

TEST_F(LlamaTokenizer, Decodes) {
  check_decoding(*tokenizer_, read_json(kData / "tokenizer/tokenizer_decode.json"));
}

TEST_F(LlamaTokenizer, EncodesTheCaseFiles) {
  check_case_files(*tokenizer_, read_json(kData / "cases/tokens_expected.json"));
}

TEST_F(LlamaTokenizer, JoinsWithoutASpace) {
  EXPECT_EQ(tokenizer_->encode_continuation(" Paris"), Ids{3681});
  EXPECT_EQ(tokenizer_->encode_continuation("\nUser:"), (Ids{13, 2659, 29901}));
  EXPECT_EQ(tokenizer_->encode(std::string("a\0b", 3)), (Ids{263, 3, 29890}));
}

}  // namespace
}  // namespace openelm
