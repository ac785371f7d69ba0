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

/// A message and what was answered.
struct Turn {
  std::string user;
  std::string answer = {};               ///< as generated, with the white space around it
  std::vector<TokenId> answer_ids = {};  ///< as far as `answer` goes; no EOS

  friend bool operator==(const Turn&, const Turn&) = default;
};

/// The turns of a chat and how they read as token ids. Turns are dropped whole, oldest first; the
/// system text and the newest turn always stay.
class Conversation {
 public:
  /// `tokenizer` is not owned and must outlive the conversation.
  Conversation(ChatTemplate chat_template, const Tokenizer& tokenizer, const ModelConfig& config,
               std::string system);

  const ChatTemplate& chat_template() const noexcept { return template_; }
  const std::string& system() const noexcept { return system_; }
  const std::vector<Turn>& turns() const noexcept { return turns_; }

  /// Throw Error when `text` is not valid UTF-8.
  void set_system(std::string text);
  void add_user(std::string text);

  void set_turns(std::vector<Turn> turns) { turns_ = std::move(turns); }

  /// Appends to the newest turn's answer.
  void extend_answer(std::span<const TokenId> ids);

  /// The newest turn's answer is `whole`, cut where its text is cut.
  void end_answer(const GenerationResult& whole);

  /// Takes the newest turn back.
  void remove_newest() { turns_.pop_back(); }

  /// All that is kept, BOS first, to the end of the newest answer. It grows at its end only, unless
  /// turns are dropped or changed.
  std::vector<TokenId> ids() const;

  /// Ids of the system text and the newest turn alone: what cannot be dropped.
  std::size_t newest_size() const;

  /// Drops turns until at most `limit` ids are left, or the newest turn alone. At least one is
  /// dropped if there is one besides the newest. Returns how many.
  std::size_t drop_oldest(std::size_t limit);

 private:
  std::vector<TokenId> render(std::span<const Turn> turns) const;

  ChatTemplate template_;
  const Tokenizer* tokenizer_;
  TokenId bos_id_;
  TokenId eos_id_;
  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace openelm::cli
