#include "runtime/scheduler.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <openelm/error.h>
#include <openelm/session.h>

#include "runtime/prefix_length.h"

namespace openelm {
namespace {

/// Shorter beginnings are not worth the waiting.
constexpr std::int32_t kLeastShared = 32;

/// Tokens that `prompt` can take over from a sequence of `tokens`: its last one is evaluated in any
/// case, since its logits are wanted.
std::int32_t shareable(std::span<const TokenId> prompt, std::span<const TokenId> tokens) {
  return static_cast<std::int32_t>(prefix_length(prompt.first(prompt.size() - 1), tokens));
}

}  // namespace

Scheduler::Scheduler(SequencePool& pool, const Tokenizer* tokenizer, KvType kv_type,
                     std::int32_t parallel, const BatchHooks& hooks,
                     const std::atomic<bool>* cancel)
    : pool_(pool),
      tokenizer_(tokenizer),
      kv_type_(kv_type),
      parallel_(static_cast<std::size_t>(parallel)),
      hooks_(hooks),
      cancel_(cancel) {
  statistics_.parallel = parallel;
  statistics_.kv_bytes = pool.kv_bytes();
}

BatchStatistics Scheduler::run() {
  try {
    while (!statistics_.ended_early) {
      if (cancel_ != nullptr && *cancel_) throw Interrupted();
      admit();
      if (slots_.empty() && at_end_) break;
      assign_sequences();
      if (!slots_.empty()) pass();
      collect();
      if (hooks_.progress) hooks_.progress(statistics_);
    }
  } catch (const Interrupted&) {
    statistics_.ended_early = true;
  }
  return statistics_;
}

/// Begins requests while there are slots and pages for them.
void Scheduler::admit() {
  while (slots_.size() < parallel_ && !statistics_.ended_early) {
    if (!next_) {
      if (at_end_) return;
      BatchRequest request;
      const BatchHooks::Supply supply = hooks_.next(request, slots_.empty());
      if (supply == BatchHooks::Supply::end) at_end_ = true;
      if (supply != BatchHooks::Supply::request) return;
      next_ = std::move(request);
    }
    try {
      if (!begin(*next_)) return;
    } catch (const Error& error) {
      deliver({.number = next_->number, .result = {}, .error = error.what()});
    }
    next_.reset();
  }
}

/// False when the request has to wait for pages. Throws Error for one that can never be done.
bool Scheduler::begin(BatchRequest& request) {
  if (request.prompt.empty()) throw UsageError("the prompt has no tokens");
  pool_.require_valid(request.prompt, 0);
  const ModelConfig& config = pool_.engine().config();
  const std::int64_t length = std::ssize(request.prompt);
  GenerationState generation({.tokenizer = tokenizer_,
                              .vocab_size = config.vocab_size,
                              .eos_id = config.eos_id,
                              .room = static_cast<std::int32_t>(pool_.context() - length)},
                             request.options, no_callback_, request.at_start);
  std::int64_t most = pool_.context();
  if (request.options.max_tokens >= 0) {
    most = std::min(most, length + request.options.max_tokens);
  }
  const std::int32_t n_pages = kv_pages(most);
  if (!make_room(n_pages)) return false;
  statistics_.prompt_tokens += request.prompt.size();
  slots_.push_back(std::make_unique<Slot>(Slot{.request = std::move(request),
                                               .generation = std::move(generation),
                                               .promised_pages = n_pages,
                                               .sequence = std::nullopt,
                                               .error = std::nullopt}));
  return true;
}

/// Whether `n_pages` can be promised; gives up finished sequences for it, the oldest first.
bool Scheduler::make_room(std::int32_t n_pages) {
  std::int32_t promised = n_pages;
  for (const auto& slot : slots_) {
    promised += slot->promised_pages - (slot->sequence ? pool_.held_pages(*slot->sequence) : 0);
  }
  while (pool_.free_pages() < promised) {
    if (finished_.empty()) return false;
    pool_.remove(finished_.front());
    finished_.pop_front();
  }
  return true;
}

void Scheduler::assign_sequences() {
  for (auto it = slots_.begin(); it != slots_.end(); ++it) {
    Slot& slot = **it;
    if (slot.sequence) continue;
    const Prefix prefix = longest_held(slot);
    if (should_wait(it, prefix.length)) continue;
    if (prefix.length >= kLeastShared) {
      slot.sequence = pool_.fork(prefix.sequence, prefix.length);
      const auto used = std::find(finished_.begin(), finished_.end(), prefix.sequence);
      if (used != finished_.end()) std::rotate(used, used + 1, finished_.end());
    }
    if (!slot.sequence) slot.sequence = pool_.add();
    statistics_.evaluated_tokens +=
        slot.request.prompt.size() - static_cast<std::size_t>(pool_.length(*slot.sequence));
  }
}

/// The sequence that has most of the slot's prompt, and how much.
Scheduler::Prefix Scheduler::longest_held(const Slot& slot) const {
  Prefix best{.sequence = -1, .length = 0};
  const auto consider = [&](std::int32_t sequence) {
    const std::int32_t length = shareable(slot.request.prompt, pool_.tokens(sequence));
    if (length > best.length) best = {sequence, length};
  };
  for (const std::int32_t sequence : finished_) consider(sequence);
  for (const auto& other : slots_) {
    if (other->sequence) consider(*other->sequence);
  }
  return best;
}

/// Whether an earlier slot is about to have clearly more of the prompt than `held` tokens. The
/// earliest slot never waits, so somebody always goes on.
bool Scheduler::should_wait(Slots::const_iterator slot, std::int32_t held) const {
  return std::any_of(slots_.cbegin(), slot, [&](const auto& earlier) {
    return in_prompt(*earlier) &&
           shareable((*slot)->request.prompt, earlier->request.prompt) >= held + kLeastShared;
  });
}

std::int32_t Scheduler::evaluated(const Slot& slot) const {
  return slot.sequence ? pool_.length(*slot.sequence) : 0;
}

bool Scheduler::in_prompt(const Slot& slot) const {
  return evaluated(slot) < std::ssize(slot.request.prompt);
}

/// What the slot has to evaluate next, at most `budget` tokens.
std::span<const TokenId> Scheduler::next_tokens(const Slot& slot, std::int32_t budget) const {
  if (!in_prompt(slot)) return {&slot.generation.tokens().back(), 1};
  const auto rest =
      std::span(slot.request.prompt).subspan(static_cast<std::size_t>(evaluated(slot)));
  return rest.first(std::min(rest.size(), static_cast<std::size_t>(budget)));
}

/// One pass: a token of every slot that generates, and as much of the prompts as fits beside them.
void Scheduler::pass() {
  std::vector<SequencePool::Work> work;
  std::vector<Slot*> owners;
  std::int32_t budget = pool_.max_rows();
  for (const bool prompts : {false, true}) {
    for (const auto& slot : slots_) {
      if (!slot->sequence || in_prompt(*slot) != prompts || budget == 0) continue;
      const std::span<const TokenId> tokens = next_tokens(*slot, budget);
      budget -= static_cast<std::int32_t>(tokens.size());
      slot->last_row = static_cast<std::int32_t>(tokens.size()) - 1;
      const bool to_the_end =
          !prompts || evaluated(*slot) + std::ssize(tokens) == std::ssize(slot->request.prompt);
      work.push_back({*slot->sequence, tokens, {&slot->last_row, to_the_end ? 1U : 0U}});
      owners.push_back(slot.get());
    }
  }
  const bool full = owners.size() == parallel_ && budget + std::ssize(owners) == pool_.max_rows();
  const auto start = std::chrono::steady_clock::now();
  pool_.evaluate(
      work,
      [&](std::size_t item, std::int32_t, std::span<const float> logits) {
        choose(*owners[item], logits);
      },
      cancel_);
  ++statistics_.passes;
  if (full) {
    statistics_.full_pass_tokens += owners.size();
    statistics_.full_pass_seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
}

/// The slot's next token, if it wants one, from the logits after its last.
void Scheduler::choose(Slot& slot, std::span<const float> logits) {
  const std::span<const TokenId> history = pool_.tokens(*slot.sequence);
  try {
    require_finite(logits, static_cast<std::int32_t>(history.size()) - 1, kv_type_);
    if (slot.generation.wants_token()) slot.generation.choose(logits, history);
  } catch (const Error& error) {
    slot.error = error.what();
  }
}

/// Takes the slots that have ended out of their places.
void Scheduler::collect() {
  for (auto& slot : slots_) {
    if (!slot->error && (in_prompt(*slot) || slot->generation.wants_token())) continue;
    retire(*slot);
    slot.reset();
  }
  std::erase(slots_, nullptr);
}

void Scheduler::retire(Slot& slot) {
  const std::int32_t sequence = *slot.sequence;
  if (slot.error || pool_.length(sequence) < kLeastShared) {
    pool_.remove(sequence);
  } else {
    finished_.push_back(sequence);
    if (finished_.size() > parallel_) {
      pool_.remove(finished_.front());
      finished_.pop_front();
    }
  }
  BatchAnswer answer{.number = slot.request.number, .result = {}, .error = slot.error};
  if (!slot.error) answer.result = slot.generation.finish();
  statistics_.generated_tokens += answer.result.tokens.size();
  deliver(std::move(answer));
}

void Scheduler::deliver(BatchAnswer answer) {
  ++statistics_.answers;
  if (answer.error) ++statistics_.errors;
  if (!hooks_.answer(std::move(answer))) statistics_.ended_early = true;
}

}  // namespace openelm
