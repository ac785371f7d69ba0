#include "text/sentencepiece_file.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <openelm/error.h>

namespace openelm {
namespace {

const std::string& model() {
  static const std::string bytes = [] {
    std::ifstream file(OPENELM_MODELS "/openelm-tiny/tokenizer.model", std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

/// The message for `bytes`, or nothing if they are accepted.
std::string fault(std::string_view bytes) {
  try {
    require_sentencepiece_model(bytes, "tokenizer.model");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// A field of protobuf's wire format that holds bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}

const std::string kPieceField = field(1, field(1, "a"));
const std::string kTrainerField = field(2, "");
const std::string kIdentity = field(3, field(1, "identity") + field(2, ""));

TEST(SentencePieceFile, AWholeModelIsAccepted) {
  ASSERT_FALSE(model().empty());
  EXPECT_EQ(fault(model()), "");
  EXPECT_EQ(fault(kPieceField + kTrainerField + kIdentity), "");
  const std::string numbers(
      "\x38\x96\x01\x41"
      "12345678"
      "\x4D"
      "1234",
      17);
  EXPECT_EQ(fault(kPieceField + numbers + kTrainerField + kIdentity), "") << "unknown fields";
}

TEST(SentencePieceFile, FilesOfOtherKindsAreNamed) {
  EXPECT_EQ(fault(""), "tokenizer.model: the file is empty (0 bytes)");
  EXPECT_EQ(fault("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 499723\n"),
            "tokenizer.model: is a Git LFS pointer, not the tokenizer itself: fetch it with `git "
            "lfs pull`");
  const std::string page = "is a web page, not a SentencePiece model: download the raw file";
  EXPECT_EQ(fault("<!DOCTYPE html><html>"), "tokenizer.model: " + page);
  EXPECT_EQ(fault("\r\n  <html lang=\"en\">"), "tokenizer.model: " + page);
  EXPECT_EQ(fault("{\"version\": \"1.0\"}"),
            "tokenizer.model: is JSON, not a SentencePiece model: expected `tokenizer.model`");
}

TEST(SentencePieceFile, JunkIsNoModel) {
  const std::string no_model = "tokenizer.model: not a SentencePiece model";
  EXPECT_TRUE(fault("not found").starts_with(no_model));
  EXPECT_TRUE(fault("\n").starts_with(no_model));
  EXPECT_TRUE(fault(std::string(64, '\0')).starts_with(no_model)) << "field number 0";
  EXPECT_TRUE(fault(std::string(64, '\xFF')).starts_with(no_model)) << "a number without an end";
  EXPECT_TRUE(fault("\x0B").starts_with(no_model)) << "a group";
  EXPECT_TRUE(fault(kTrainerField + kIdentity).starts_with(no_model)) << "no pieces";
  const std::string huge("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 11);
  EXPECT_TRUE(fault(huge).starts_with(no_model)) << "a length of 2^64 - 1";
}

TEST(SentencePieceFile, NoTruncationPasses) {
  EXPECT_EQ(fault(model().substr(0, 1000)),
            "tokenizer.model: the SentencePiece model is cut short or damaged at byte 997 of 1000, "
            "after 59 pieces: download it again");
  const std::string_view whole = model();
  for (std::size_t size = 0; size < 3000; ++size) {
    ASSERT_NE(fault(whole.substr(0, size)), "") << size;
    ASSERT_NE(fault(whole.substr(0, whole.size() - 1 - size)), "")
        << size << " bytes before the end";
  }
}

TEST(SentencePieceFile, AModelThatNormalisesTextIsRefused) {
  const std::string nfkc = field(1, "nmt_\nnfkc") + field(2, "table");
  const std::string message =
      "tokenizer.model: normalises text (rule `nmt_nfkc`, a table of 5 bytes); only the rule "
      "`identity` is supported";
  EXPECT_EQ(fault(kPieceField + kTrainerField + field(3, nfkc)), message);
  EXPECT_EQ(fault(kPieceField + kTrainerField + kIdentity + field(5, nfkc)), message)
      << "the way back counts too";
}

}  // namespace
}  // namespace openelm
