#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/config.h>
#include <openelm/generation.h>
#include <openelm/tokenizer.h>

#include "cli/chat_template.h"

namespace openelm::cli {

/// The turns of a chat and how they read as token ids. Turns are dropped whole, oldest first; the
/// system text and the newest turn always stay.
class Conversation {
 public:
  Conversation(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
               const ModelConfig& config, std::string system);

  /// Begins a turn. Throws Error when `text` is not valid UTF-8.
  void add_user(std::string text);

  /// Appends to the newest turn's answer.
  void extend_answer(std::span<const TokenId> ids);

  /// The newest turn's answer is `whole`, cut where its text is cut.
  void end_answer(const GenerationResult& whole);

  /// Takes the newest turn back.
  void remove_newest() { turns_.pop_back(); }

  /// Forgets all turns.
  void clear() { turns_.clear(); }

  std::size_t size() const noexcept { return turns_.size(); }

  /// All that is kept, BOS first. It grows at its end only, unless turns are dropped.
  std::vector<TokenId> ids() const;

  /// Ids of the system text and the newest turn alone: what cannot be dropped.
  std::size_t newest_size() const;

  /// Drops turns until at most `limit` ids are left, or the newest turn alone. At least one is
  /// dropped if there is one besides the newest. Returns how many.
  std::size_t drop_oldest(std::size_t limit);

 private:
  struct Turn {
    std::string user;
    std::vector<TokenId> answer;
    bool ended = false;  // by EOS
  };

  void append_turn(const Turn& turn, bool first, std::vector<TokenId>& ids) const;
  std::vector<TokenId> opening() const;

  const ChatTemplate* template_;
  const Tokenizer* tokenizer_;
  TokenId bos_id_;
  TokenId eos_id_;
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace openelm::cli
