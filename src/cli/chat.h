#pragma once

#include <cstdint>
#include <string>

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
};

/// A conversation held in a session. Only what is new is evaluated at each turn; when the context
/// is full the oldest turns are dropped until half of it is free, and what is kept is evaluated
/// anew.
class Chat {
 public:
  /// Nothing here is owned; all must outlive the chat.
  Chat(Session& session, const Tokenizer& tokenizer, const ChatTemplate& chat_template,
       std::string system);

  /// Answers `message`. Throws MessageRefused when it is not UTF-8 or longer than the context.
  Answer answer(std::string message, const GenerationOptions& options, const TextCallback& on_text);

  void reset() { conversation_.clear(); }

 private:
  void begin_turn(std::string message);
  void make_room();

  Session& session_;
  const Tokenizer& tokenizer_;
  Conversation conversation_;
};

}  // namespace openelm::cli
