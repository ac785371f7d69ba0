#include "text/sentencepiece_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <openelm/error.h>

namespace openelm {
namespace {

/// Field numbers of sentencepiece_model.proto.
enum ModelField : std::uint64_t { kPiece = 1, kTrainer = 2, kNormalizer = 3, kDenormalizer = 5 };
enum NormalizerField : std::uint64_t { kNormalizerName = 1, kPrecompiledCharsmap = 2 };

struct Field {
  std::uint64_t number = 0;
  std::string_view bytes;  // the payload of a length-delimited field; empty for numbers
};

/// Reads the fields of one protobuf message; `next` gives nothing at the end or where the bytes are
/// no field, and `at_end` tells these apart.
class MessageReader {
 public:
  explicit MessageReader(std::string_view message) : message_(message) {}

  bool at_end() const noexcept { return position_ == message_.size(); }
  std::size_t position() const noexcept { return position_; }

  std::optional<Field> next() {
    const std::size_t start = position_;
    std::optional<Field> field = read();
    if (!field) position_ = start;
    return field;
  }

 private:
  std::optional<Field> read() {
    const std::optional<std::uint64_t> tag = varint();
    if (!tag || *tag >> 3 == 0) return std::nullopt;
    Field field{*tag >> 3, {}};
    switch (*tag & 7U) {
      case 0:
        if (!varint()) return std::nullopt;
        return field;
      case 1:
        return take(8) ? std::optional(field) : std::nullopt;
      case 2: {
        const std::optional<std::uint64_t> length = varint();
        if (!length) return std::nullopt;
        const std::optional<std::string_view> bytes = take(*length);
        if (!bytes) return std::nullopt;
        field.bytes = *bytes;
        return field;
      }
      case 5:
        return take(4) ? std::optional(field) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<std::string_view> take(std::uint64_t length) {
    if (length > message_.size() - position_) return std::nullopt;
    const std::string_view bytes = message_.substr(position_, static_cast<std::size_t>(length));
    position_ += bytes.size();
    return bytes;
  }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && position_ < message_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(message_[position_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::string_view message_;
  std::size_t position_ = 0;
};

/// What a file of another kind is, by how it begins.
std::optional<std::string> other_kind(std::string_view bytes) {
  if (bytes.empty()) return "the file is empty (0 bytes)";
  if (bytes.starts_with("version https://git-lfs")) {
    return "is a Git LFS pointer, not the tokenizer itself: fetch it with `git lfs pull`";
  }
  const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto first = std::find_if_not(bytes.begin(), bytes.end(), is_space);
  if (first == bytes.end()) return std::nullopt;
  if (*first == '<') return "is a web page, not a SentencePiece model: download the raw file";
  if (*first == '{') return "is JSON, not a SentencePiece model: expected `tokenizer.model`";
  return std::nullopt;
}

/// A compiled table of character replacements is refused: OpenELM's tokenizer has none, and the
/// library walks it without checking bounds, so a crafted one reads outside of its memory.
void require_identity(std::string_view normalizer, const std::string& where) {
  std::string name;
  std::size_t table_bytes = 0;
  MessageReader reader(normalizer);
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == kNormalizerName) name = field->bytes;
    if (field->number == kPrecompiledCharsmap) table_bytes = field->bytes.size();
  }
  if (table_bytes == 0) return;
  std::erase_if(name, [](unsigned char c) { return std::isgraph(c) == 0; });
  throw Error(where + ": normalises text (rule `" + name.substr(0, 40) + "`, a table of " +
              std::to_string(table_bytes) + " bytes); only the rule `identity` is supported");
}

}  // namespace

void require_sentencepiece_model(std::string_view bytes, const std::string& where) {
  if (const std::optional<std::string> kind = other_kind(bytes)) throw Error(where + ": " + *kind);

  std::size_t pieces = 0;
  std::array<bool, 6> seen{};
  MessageReader reader(bytes);
  while (const std::optional<Field> field = reader.next()) {
    if (field->number == kPiece) ++pieces;
    if (field->number < seen.size()) seen[field->number] = true;
    if (field->number == kNormalizer || field->number == kDenormalizer) {
      require_identity(field->bytes, where);
    }
  }
  if (pieces == 0) {
    throw Error(where + ": not a SentencePiece model (expected a vocabulary at byte " +
                std::to_string(reader.position()) + ")");
  }
  const bool whole = reader.at_end() && seen[kTrainer] && seen[kNormalizer];
  if (!whole) {
    throw Error(where + ": the SentencePiece model is cut short or damaged at byte " +
                std::to_string(reader.position()) + " of " + std::to_string(bytes.size()) +
                ", after " + std::to_string(pieces) + " pieces: download it again");
  }
}

}  // namespace openelm
