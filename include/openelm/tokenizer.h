#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/config.h>

namespace openelm {

/// A SentencePiece model (`tokenizer.model`). Immutable; safe to share between threads.
///
/// Text is UTF-8 and always plain: "<s>" or "<0x0A>" in it are ordinary characters, never control
/// tokens. BOS and EOS are added by the caller, as ids.
class Tokenizer {
 public:
  /// Throws Error when the file is missing, unreadable, or not a SentencePiece model (and says so
  /// when it looks like a Git LFS pointer or a web page).
  static std::shared_ptr<const Tokenizer> load(const std::filesystem::path& file);

  virtual ~Tokenizer() = default;

  virtual std::int32_t vocab_size() const noexcept = 0;
  virtual TokenId bos_id() const noexcept = 0;  ///< -1 when the model has none
  virtual TokenId eos_id() const noexcept = 0;  ///< -1 when the model has none

  /// Ids of `text`, without BOS and EOS. NUL bytes are text. Throws Error, with the byte offset,
  /// when `text` is not valid UTF-8.
  virtual std::vector<TokenId> encode(std::string_view text) const = 0;

  /// Ids of `text` where it goes on after other text: as encode, without the space that is put in
  /// front of a text. For the later turns of a chat and other joins.
  virtual std::vector<TokenId> encode_continuation(std::string_view text) const = 0;

  /// The piece as the vocabulary spells it, for display: "\u2581Hello", "<0x0A>", "<s>".
  virtual std::string_view piece(TokenId id) const = 0;

  /// Appends the bytes that `id` stands for in running text: nothing for control tokens, one byte
  /// for a byte piece, else its text with U+2581 as a space. Throws Error for an id out of range.
  virtual void append_bytes(TokenId id, std::string& out) const = 0;

  /// Whether encode puts a space in front of a text, as Llama's tokenizer does.
  virtual bool adds_leading_space() const noexcept { return true; }

  /// Bytes of a whole sequence that begins a text: as append_bytes, with the one space that the
  /// encoder puts in front of a text taken off again. Not necessarily valid UTF-8.
  std::string decode(std::span<const TokenId> ids) const;

 protected:
  Tokenizer() = default;
};

/// Turns ids into text piece by piece, never yielding a part of a character. The pieces put
/// together are, byte for byte, what decoding all ids at once gives.
class StreamDecoder {
 public:
  /// `at_start`: the ids begin a text, so the encoder's leading space is dropped; false when they
  /// go on after a prompt.
  StreamDecoder(const Tokenizer& tokenizer, bool at_start);

  /// The characters that became complete with `id`; may be empty. Bytes that can no longer become
  /// a character are passed on as they are.
  std::string push(TokenId id);

  /// The bytes still held back: an unfinished character, or nothing.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  std::string held_;
  bool drop_space_;
};

}  // namespace openelm
