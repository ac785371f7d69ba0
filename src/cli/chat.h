#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <openelm/error.h>
#include <openelm/generation.h>
#include <openelm/session.h>

#include "cli/conversation.h"

namespace openelm::cli {

/// A message that cannot be answered; the chat stands as it was before.
class MessageRefused : public Error {
 public:
  using Error::Error;
};

/// An answer, with what its evaluation took.
struct Answer {
  GenerationResult result;
  std::size_t prompt_tokens = 0;     ///< all that stood before the answer
  std::size_t evaluated_tokens = 0;  ///< of these, those that were not in the cache already
  bool taken_back =
      false;  ///< interrupted before its first token: the chat stands as it was before
};

/// A conversation held in a session. Only what is new is evaluated at each turn; when the context
/// is full the oldest turns are dropped until half of it is free, and what is kept is evaluated
/// anew. The logits are at any time those of a fresh session that is given ids(), bit for bit.
class Chat {
 public:
  /// Called before an answer with all that the model sees.
  using PromptCallback = std::function<void(std::span<const TokenId> ids)>;

  /// Nothing here is owned but the template; all must outlive the chat.
  Chat(Session& session, const Tokenizer& tokenizer, ChatTemplate chat_template,
       std::string system);

  void set_prompt_callback(PromptCallback callback) { on_prompt_ = std::move(callback); }

  /// Answers `message`. Throws MessageRefused when it is not UTF-8 or longer than the context.
  /// Whatever it throws, the chat stands as it was before.
  Answer answer(std::string message, const GenerationOptions& options, const TextCallback& on_text);

  /// Answers `message` in the place of the newest turn, which must exist, and which stays if this
  /// one fails or is taken back.
  Answer replace_newest(std::string message, const GenerationOptions& options,
                        const TextCallback& on_text);

  /// Takes the newest turn back; false if there is none.
  bool undo();

  /// Forgets all turns.
  void reset() { conversation_.set_turns({}); }

  /// Changes the system text. Throws Error when it is not UTF-8 or longer than the context.
  void set_system(std::string text);

  /// Goes on from other turns and another system text. Throws Error, and changes nothing, when they
  /// are longer than the context.
  void restore(std::string system, std::vector<Turn> turns);

  const Conversation& conversation() const noexcept { return conversation_; }
  std::int32_t context() const noexcept { return session_.context(); }

 private:
  Answer run(const GenerationOptions& options, const TextCallback& on_text);
  void begin_turn(std::string message);
  void make_room();

  Session& session_;
  const Tokenizer& tokenizer_;
  Conversation conversation_;
  PromptCallback on_prompt_;
};

}  // namespace openelm::cli
