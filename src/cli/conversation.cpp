#include "cli/conversation.h"

#include <utility>

#include "base/utf8.h"

namespace openelm::cli {
namespace {

/// The generated ids as far as their text goes: of those that spell the stop string nothing is
/// kept.
std::vector<TokenId> cut_to_text(const Tokenizer& tokenizer, const GenerationResult& result) {
  std::string bytes;
  std::size_t kept = 0;
  std::size_t kept_bytes = 0;
  for (const TokenId id : result.tokens) {
    tokenizer.append_bytes(id, bytes);
    if (bytes.size() > result.text.size()) break;
    ++kept;
    kept_bytes = bytes.size();
  }
  std::vector<TokenId> ids(result.tokens.begin(),
                           result.tokens.begin() + static_cast<std::ptrdiff_t>(kept));
  // A token may hold both the end of the answer and the beginning of the stop string.
  const std::string rest = result.text.substr(kept_bytes);
  if (!rest.empty() && !find_invalid_utf8(rest)) {
    const std::vector<TokenId> tail = tokenizer.encode_continuation(rest);
    ids.insert(ids.end(), tail.begin(), tail.end());
  }
  return ids;
}

}  // namespace

Conversation::Conversation(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                           const ModelConfig& config, std::string system)
    : template_(&chat_template),
      tokenizer_(&tokenizer),
      bos_id_(config.bos_id),
      eos_id_(config.eos_id),
      system_(std::move(system)) {}

void Conversation::add_user(std::string text) {
  require_utf8(text, "the message");
  turns_.push_back({.user = std::move(text), .answer = {}});
}

void Conversation::extend_answer(std::span<const TokenId> ids) {
  std::vector<TokenId>& answer = turns_.back().answer;
  answer.insert(answer.end(), ids.begin(), ids.end());
}

void Conversation::end_answer(const GenerationResult& whole) {
  turns_.back().answer = cut_to_text(*tokenizer_, whole);
  turns_.back().ended = whole.reason == FinishReason::stop && !whole.stop;
}

std::vector<TokenId> Conversation::opening() const {
  std::vector<TokenId> ids{bos_id_};
  const std::vector<TokenId> system = tokenizer_->encode(system_);
  ids.insert(ids.end(), system.begin(), system.end());
  return ids;
}

void Conversation::append_turn(const Turn& turn, bool first, std::vector<TokenId>& ids) const {
  std::string text(first && system_.empty() ? "" : template_->between_turns);
  text.append(template_->before_user).append(turn.user).append(template_->after_user);
  // The space that the encoder puts in front of a text belongs to the very first one only.
  const std::vector<TokenId> part =
      first && system_.empty() ? tokenizer_->encode(text) : tokenizer_->encode_continuation(text);
  ids.insert(ids.end(), part.begin(), part.end());
  ids.insert(ids.end(), turn.answer.begin(), turn.answer.end());
  if (turn.ended && template_->eos_after_answer) ids.push_back(eos_id_);
}

std::vector<TokenId> Conversation::ids() const {
  std::vector<TokenId> ids = opening();
  for (std::size_t i = 0; i < turns_.size(); ++i) append_turn(turns_[i], i == 0, ids);
  return ids;
}

std::size_t Conversation::newest_size() const {
  std::vector<TokenId> ids = opening();
  append_turn(turns_.back(), true, ids);
  return ids.size();
}

std::size_t Conversation::drop_oldest(std::size_t limit) {
  std::size_t dropped = 0;
  while (turns_.size() > 1 && (dropped == 0 || ids().size() > limit)) {
    turns_.erase(turns_.begin());
    ++dropped;
  }
  return dropped;
}

}  // namespace openelm::cli
