#include <algorithm>
#include <charconv>
#include <cstddef>
#include <utility>

#include <sentencepiece_processor.h>

#include <openelm/error.h>
#include <openelm/tokenizer.h>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "text/sentencepiece_file.h"

namespace openelm {
namespace {

using sentencepiece::SentencePieceProcessor;

constexpr std::string_view kSpaceMark = "\u2581";
constexpr std::string_view kUnknownText = " \u2047 ";  // as the library decodes <unk>

/// A field of ModelProto in protobuf's wire format: normalizer_spec (3) { add_dummy_prefix (3):
/// false }. Where a message field occurs twice, a parser merges the later one into the earlier, so
/// these four bytes at the end of a serialised model change that one setting and nothing else.
constexpr std::string_view kNoDummyPrefix("\x1A\x02\x18\x00", 4);

/// The library's reason as part of a line on a terminal. It may quote a piece, which is any bytes.
std::string printable(std::string_view reason) {
  std::string line(reason.substr(0, 120));
  std::replace_if(
      line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, '?');
  return replace_invalid_utf8(line);
}

void load_processor(SentencePieceProcessor& processor, std::string_view model,
                    const std::string& where) {
  const auto status = processor.LoadFromSerializedProto(model);
  if (status.ok()) return;
  throw Error(where + ": not a usable SentencePiece model: " + printable(status.ToString()));
}

std::vector<TokenId> encode_with(const SentencePieceProcessor& processor, std::string_view text) {
  require_utf8(text, "text");
  std::vector<TokenId> ids;
  const auto status = processor.Encode(text, &ids);
  if (!status.ok()) throw Error("cannot tokenize the text: " + status.ToString());
  return ids;
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  SentencePieceTokenizer(std::string_view model, const std::string& where) {
    require_sentencepiece_model(model, where);
    load_processor(whole_, model, where);
    load_processor(continuation_, std::string(model).append(kNoDummyPrefix), where);
    const std::vector<std::string> probe = whole_.EncodeAsPieces("a");
    adds_leading_space_ = !probe.empty() && probe.front().starts_with(kSpaceMark);
  }

  std::int32_t vocab_size() const noexcept override { return whole_.GetPieceSize(); }
  TokenId bos_id() const noexcept override { return whole_.bos_id(); }
  TokenId eos_id() const noexcept override { return whole_.eos_id(); }
  bool adds_leading_space() const noexcept override { return adds_leading_space_; }

  std::vector<TokenId> encode(std::string_view text) const override {
    return encode_with(whole_, text);
  }

  std::vector<TokenId> encode_continuation(std::string_view text) const override {
    return encode_with(continuation_, text);
  }

  std::string_view piece(TokenId id) const override {
    require_known(id);
    return whole_.IdToPiece(id);
  }

  void append_bytes(TokenId id, std::string& out) const override {
    std::string_view rest = piece(id);
    if (whole_.IsControl(id)) return;
    if (whole_.IsUnknown(id)) {
      out += kUnknownText;
    } else if (whole_.IsByte(id)) {
      out.push_back(byte_of(rest));
    } else {
      for (std::size_t mark; (mark = rest.find(kSpaceMark)) != std::string_view::npos;) {
        out.append(rest.substr(0, mark)).push_back(' ');
        rest.remove_prefix(mark + kSpaceMark.size());
      }
      out += rest;
    }
  }

 private:
  void require_known(TokenId id) const {
    if (id >= 0 && id < vocab_size()) return;
    throw Error("token id " + std::to_string(id) + " is outside the tokenizer's vocabulary of " +
                std::to_string(vocab_size()));
  }

  /// The value of a byte piece "<0xAB>"; the library has checked the spelling while loading.
  static char byte_of(std::string_view piece) {
    unsigned value = 0;
    std::from_chars(piece.data() + 3, piece.data() + 5, value, 16);
    return static_cast<char>(value);
  }

  SentencePieceProcessor whole_;         // a text from its start
  SentencePieceProcessor continuation_;  // text that goes on: no dummy prefix
  bool adds_leading_space_ = true;
};

}  // namespace

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  const std::string_view model(reinterpret_cast<const char*>(mapped.bytes().data()),
                               mapped.bytes().size());
  return std::make_shared<SentencePieceTokenizer>(model, file.string());
}

}  // namespace openelm
