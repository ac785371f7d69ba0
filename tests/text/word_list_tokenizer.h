#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openelm/error.h>
#include <openelm/tokenizer.h>

namespace openelm {

/// A tokenizer for tests that decode only: its vocabulary is a list of pieces as SentencePiece
/// spells them, with "<s>" and "</s>" as control tokens and "<0xAB>" as bytes.
class WordListTokenizer final : public Tokenizer {
 public:
  explicit WordListTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}

  std::int32_t vocab_size() const noexcept override {
    return static_cast<std::int32_t>(pieces_.size());
  }
  TokenId bos_id() const noexcept override { return -1; }
  TokenId eos_id() const noexcept override { return -1; }

  std::vector<TokenId> encode(std::string_view) const override {
    throw Error("a word list does not encode");
  }
  std::vector<TokenId> encode_continuation(std::string_view text) const override {
    return encode(text);
  }

  std::string_view piece(TokenId id) const override {
    return pieces_.at(static_cast<std::size_t>(id));
  }

  void append_bytes(TokenId id, std::string& out) const override {
    const std::string spelled(piece(id));
    if (spelled == "<s>" || spelled == "</s>") return;
    if (spelled.starts_with("<0x")) {
      out.push_back(static_cast<char>(std::stoi(spelled.substr(3, 2), nullptr, 16)));
    } else if (constexpr std::string_view mark = "\u2581"; spelled.starts_with(mark)) {
      out.append(" ").append(spelled, mark.size());
    } else {
      out += spelled;
    }
  }

 private:
  std::vector<std::string> pieces_;
};

}  // namespace openelm
