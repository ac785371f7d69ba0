#include "cli/chat.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <spdlog/spdlog.h>

#include "runtime/prefix_length.h"
#include "runtime/stopped_text.h"

namespace openelm::cli {
namespace {

/// Appends to `whole` what was generated after room was made.
void append(GenerationResult&& part, GenerationResult& whole) {
  whole.tokens.insert(whole.tokens.end(), part.tokens.begin(), part.tokens.end());
  std::move(part.logprobs.begin(), part.logprobs.end(), std::back_inserter(whole.logprobs));
  whole.reason = part.reason;
  whole.prompt_seconds += part.prompt_seconds;
  whole.generate_seconds += part.generate_seconds;
}

}  // namespace

Chat::Chat(Session& session, const Tokenizer& tokenizer, ChatTemplate chat_template,
           std::string system)
    : session_(session),
      tokenizer_(tokenizer),
      conversation_(std::move(chat_template), tokenizer, session.engine().config(), "") {
  set_system(std::move(system));
}

void Chat::begin_turn(std::string message) {
  try {
    conversation_.add_user(std::move(message));
  } catch (const Error& error) {
    throw MessageRefused(error.what());
  }
  const auto context = static_cast<std::size_t>(session_.context());
  const std::size_t needed = conversation_.newest_size();
  if (needed >= context) {
    throw MessageRefused("the message takes " + std::to_string(needed) +
                         " tokens with all that must stand around it, the context holds " +
                         std::to_string(context));
  }
  if (conversation_.ids().size() >= context) make_room();
}

void Chat::make_room() {
  const std::int32_t context = session_.context();
  const std::size_t dropped = conversation_.drop_oldest(static_cast<std::size_t>(context) / 2);
  spdlog::info("the context of {} tokens is full: the oldest {} forgotten", context,
               dropped == 1 ? "turn is" : std::to_string(dropped) + " turns are");
}

Answer Chat::answer(std::string message, const GenerationOptions& options,
                    const TextCallback& on_text) {
  const Conversation before = conversation_;
  try {
    begin_turn(std::move(message));
    Answer answer = run(options, on_text);
    const GenerationResult& result = answer.result;
    answer.taken_back = result.reason == FinishReason::interrupted && result.tokens.empty();
    if (answer.taken_back) conversation_ = before;
    return answer;
  } catch (...) {
    conversation_ = before;
    throw;
  }
}

Answer Chat::replace_newest(std::string message, const GenerationOptions& options,
                            const TextCallback& on_text) {
  const Conversation before = conversation_;
  conversation_.remove_newest();
  try {
    Answer given = answer(std::move(message), options, on_text);
    if (given.taken_back) conversation_ = before;
    return given;
  } catch (...) {
    conversation_ = before;
    throw;
  }
}

bool Chat::undo() {
  if (conversation_.turns().empty()) return false;
  conversation_.remove_newest();
  return true;
}

void Chat::set_system(std::string text) {
  Conversation changed = conversation_;
  changed.set_system(std::move(text));
  Conversation alone = changed;
  alone.set_turns({});
  const std::size_t needed = alone.ids().size();
  if (needed >= static_cast<std::size_t>(context())) {
    throw Error("the system text takes " + std::to_string(needed) + " tokens, the context holds " +
                std::to_string(context()));
  }
  conversation_ = std::move(changed);
}

void Chat::restore(std::string system, std::vector<Turn> turns) {
  Conversation changed = conversation_;
  changed.set_system(std::move(system));
  changed.set_turns(std::move(turns));
  const std::size_t needed = changed.ids().size();
  if (needed > static_cast<std::size_t>(context())) {
    throw Error("the conversation takes " + std::to_string(needed) + " tokens, the context holds " +
                std::to_string(context()) + " (--context N makes it longer)");
  }
  conversation_ = std::move(changed);
}

Answer Chat::run(const GenerationOptions& options, const TextCallback& on_text) {
  // A stop string can begin in one part of the answer and end in the next.
  StoppedText text(options.stop, on_text);
  Answer answer;
  GenerationResult& whole = answer.result;
  GenerationOptions remaining = options;
  remaining.stop.clear();  // the text is searched here, over all parts
  while (true) {
    const std::vector<TokenId> ids = conversation_.ids();
    if (on_prompt_ && answer.prompt_tokens == 0) on_prompt_(ids);
    // One token at least is evaluated, for the logits after it.
    const std::size_t kept = std::min(prefix_length(session_.tokens(), ids), ids.size() - 1);
    session_.rewind(static_cast<std::int32_t>(kept));
    const auto fresh = std::span(ids).subspan(kept);
    GenerationResult part =
        generate(session_, &tokenizer_, fresh, remaining,
                 [&](std::string_view piece) { return text.push(piece) && !text.stop(); });
    conversation_.extend_answer(part.tokens);
    if (answer.prompt_tokens == 0) answer.prompt_tokens = ids.size();
    answer.evaluated_tokens += fresh.size();
    if (remaining.max_tokens >= 0) {
      remaining.max_tokens -= static_cast<std::int32_t>(part.tokens.size());
    }
    append(std::move(part), whole);
    if (whole.reason != FinishReason::context || conversation_.turns().size() == 1) break;
    make_room();
  }
  if (whole.reason == FinishReason::context) {
    spdlog::info("the context of {} tokens is full: the answer is cut", session_.context());
  }
  text.finish();
  whole.text = text.take();
  whole.stop = text.stop();
  if (whole.stop) whole.reason = FinishReason::stop;
  conversation_.end_answer(whole);
  return answer;
}

}  // namespace openelm::cli
