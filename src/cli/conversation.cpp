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

/// Ids of texts and control tokens one after the other. Texts that touch are encoded as one.
class IdWriter {
 public:
  IdWriter(const Tokenizer& tokenizer, TokenId bos_id, TokenId eos_id)
      : tokenizer_(tokenizer), bos_id_(bos_id), eos_id_(eos_id) {}

  void text(std::string_view text) { pending_ += text; }

  void pieces(const TemplateText& pieces) {
    for (const TemplatePiece& piece : pieces) {
      if (piece.kind == TemplatePiece::Kind::text) {
        text(piece.text);
      } else {
        control(piece.kind == TemplatePiece::Kind::bos ? bos_id_ : eos_id_);
      }
    }
  }

  void control(TokenId id) { ids({&id, 1}); }

  void ids(std::span<const TokenId> more) {
    flush();
    ids_.insert(ids_.end(), more.begin(), more.end());
  }

  std::vector<TokenId> take() {
    flush();
    return std::move(ids_);
  }

 private:
  void flush() {
    if (pending_.empty()) return;
    // The space that the encoder puts in front of a text belongs right after a BOS only.
    const bool begins = !ids_.empty() && ids_.back() == bos_id_;
    const std::vector<TokenId> encoded =
        begins ? tokenizer_.encode(pending_) : tokenizer_.encode_continuation(pending_);
    ids_.insert(ids_.end(), encoded.begin(), encoded.end());
    pending_.clear();
  }

  const Tokenizer& tokenizer_;
  TokenId bos_id_;
  TokenId eos_id_;
  std::string pending_;
  std::vector<TokenId> ids_;
};

}  // namespace

Conversation::Conversation(ChatTemplate chat_template, const Tokenizer& tokenizer,
                           const ModelConfig& config, std::string system)
    : template_(std::move(chat_template)),
      tokenizer_(&tokenizer),
      bos_id_(config.bos_id),
      eos_id_(config.eos_id),
      system_(std::move(system)) {}

void Conversation::set_system(std::string text) {
  require_utf8(text, "the system text");
  system_ = std::move(text);
}

void Conversation::add_user(std::string text) {
  require_utf8(text, "the message");
  turns_.push_back({.user = std::move(text)});
}

void Conversation::extend_answer(std::span<const TokenId> ids) {
  std::vector<TokenId>& answer = turns_.back().answer_ids;
  answer.insert(answer.end(), ids.begin(), ids.end());
}

void Conversation::end_answer(const GenerationResult& whole) {
  turns_.back().answer_ids = cut_to_text(*tokenizer_, whole);
  turns_.back().answer = whole.text;
}

std::vector<TokenId> Conversation::render(std::span<const Turn> turns) const {
  IdWriter out(*tokenizer_, bos_id_, eos_id_);
  out.control(bos_id_);
  if (!system_.empty()) {
    out.pieces(template_.before_system);
    out.text(system_);
    out.pieces(template_.after_system);
  }
  for (std::size_t i = 0; i < turns.size(); ++i) {
    if (i > 0) out.pieces(template_.after_answer);
    const bool opened = i == 0 && !system_.empty() && template_.system_opens_turn;
    if (!opened) out.pieces(template_.before_user);
    out.text(turns[i].user);
    out.pieces(template_.after_user);
    out.ids(turns[i].answer_ids);
  }
  return out.take();
}

std::vector<TokenId> Conversation::ids() const { return render(turns_); }

std::size_t Conversation::newest_size() const { return render(std::span(turns_).last(1)).size(); }

std::size_t Conversation::drop_oldest(std::size_t limit) {
  std::size_t dropped = 0;
  while (dropped + 1 < turns_.size() &&
         (dropped == 0 || render(std::span(turns_).subspan(dropped)).size() > limit)) {
    ++dropped;
  }
  turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(dropped));
  return dropped;
}

}  // namespace openelm::cli
