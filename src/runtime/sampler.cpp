#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include <openelm/error.h>
#include <openelm/sampling.h>

#include "runtime/logit_scan.h"
#include "runtime/rng.h"

namespace openelm {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

/// The order of candidates: descending logit, ties to the lower id.
constexpr auto better = [](const auto& a, const auto& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
};

/// To float32, with what overflows kept finite: a huge penalty must not turn "unlikely" into
/// "forbidden".
float to_finite(double value) {
  constexpr double limit = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -limit, limit));
}

}  // namespace

TokenId pick(std::span<const TokenProbability> distribution, double u) noexcept {
  double cumulative = 0;
  TokenId last = distribution.front().id;
  for (const auto& [id, probability] : distribution) {
    cumulative += probability;
    if (cumulative > u) return id;
    if (probability > 0) last = id;
  }
  return last;  // u lies above the sum, which rounding left short of 1
}

Sampler::Sampler(const SamplingOptions& options, std::int32_t vocab_size)
    : options_(options), vocab_size_(vocab_size) {
  options_.validate(vocab_size);
}

/// logits_ = logits with penalties and bias.
void Sampler::adjust(std::span<const float> logits, std::span<const TokenId> history,
                     std::span<const TokenId> forbidden) {
  if (logits.size() != static_cast<std::size_t>(vocab_size_)) {
    throw Error("cannot sample: expected " + std::to_string(vocab_size_) + " logits, got " +
                std::to_string(logits.size()));
  }
  logits_.assign(logits.begin(), logits.end());
  penalise(history);
  for (const auto& [id, bias] : options_.logit_bias) {
    float& logit = logits_[static_cast<std::size_t>(id)];
    logit = bias == kForbidden || !std::isfinite(logit) ? logit + bias
                                                        : to_finite(double{logit} + bias);
  }
  for (const TokenId id : forbidden) {
    if (id >= 0 && id < vocab_size_) logits_[static_cast<std::size_t>(id)] = kForbidden;
  }
}

void Sampler::penalise(std::span<const TokenId> history) {
  const bool active = options_.repetition_penalty != 1.0F || options_.frequency_penalty != 0.0F ||
                      options_.presence_penalty != 0.0F;
  if (!active) return;
  const auto window = static_cast<std::size_t>(options_.repetition_window);
  if (options_.repetition_window >= 0 && window < history.size()) history = history.last(window);
  for (const TokenId id : history) {
    if (id < 0 || id >= vocab_size_) {
      throw Error("cannot sample: token " + std::to_string(id) +
                  " of the history is outside the vocabulary of " + std::to_string(vocab_size_));
    }
  }

  counts_.resize(logits_.size());
  for (const TokenId id : history) ++counts_[static_cast<std::size_t>(id)];
  for (const TokenId id : history) {
    std::int32_t& count = counts_[static_cast<std::size_t>(id)];
    float& logit = logits_[static_cast<std::size_t>(id)];
    if (count > 0 && std::isfinite(logit)) {
      const double penalty = options_.repetition_penalty;
      const double penalised = logit > 0 ? logit / penalty : logit * penalty;
      logit = to_finite(penalised - count * double{options_.frequency_penalty} -
                        double{options_.presence_penalty});
    }
    count = 0;  // done with this token; and ready for the next call
  }
}

/// Settles what may be drawn: the limit_ best tokens that are not forbidden, with weights of mass_
/// in all.
void Sampler::shape(std::span<const float> logits, std::span<const TokenId> history,
                    std::span<const TokenId> forbidden) {
  adjust(logits, history, forbidden);
  find_block_maxima(logits_, maxima_);
  candidates_.clear();
  ranked_ = 0;
  gathered_from_ = std::numeric_limits<float>::infinity();
  best_logit_ = *std::max_element(maxima_.begin(), maxima_.end());
  if (best_logit_ == kForbidden) throw Error("cannot sample: every token is forbidden");

  const auto vocab_size = static_cast<std::size_t>(vocab_size_);
  const auto top_k = static_cast<std::size_t>(options_.top_k);
  const bool truncates = options_.top_p < 1.0F || options_.min_p > 0.0F;
  limit_ = vocab_size;
  if (options_.temperature == 0.0F) {
    limit_ = 1;
    mass_ = {1, 1};
    return;
  }
  if (top_k > 0) {
    limit_ = std::min(top_k, vocab_size);
    sum_exactly();
  } else if (options_.top_p < 1.0F || !truncates) {
    const auto [low, high] = bound_mass(logits_, maxima_, best_logit_, options_.temperature);
    mass_ = {low, high};
  }
  if (truncates) truncate();
}

/// Best first with top-k, else by ascending id: fixed orders, so the sum is the same everywhere.
void Sampler::sum_exactly() {
  double mass = 0;
  if (options_.top_k > 0) {
    rank(limit_);
    for (std::size_t i = 0; rank(i + 1); ++i) mass += weight(candidates_[i].logit);
  } else {
    for (const float logit : logits_) mass += weight(logit);
  }
  mass_ = {mass, mass};
}

/// Whether `part` of the mass is at least `share` of it.
bool Sampler::reaches(double part, double share) {
  if (part / mass_.high >= share) return true;
  if (part / mass_.low < share) return false;
  sum_exactly();
  return part / mass_.low >= share;
}

/// Moves limit_ behind top-p's and min-p's last token, and mass_ with it.
void Sampler::truncate() {
  const double top_p = options_.top_p;
  const double min_p = options_.min_p;
  std::size_t kept = 0;
  double kept_mass = 0;
  while (rank(kept + 1)) {
    const double next = weight(candidates_[kept].logit);
    if (kept > 0 && next < min_p) break;  // the best token's weight is 1
    kept_mass += next;
    ++kept;
    if (top_p < 1.0 && reaches(kept_mass, top_p)) break;
  }
  limit_ = kept;
  mass_ = {kept_mass, kept_mass};
}

/// Puts the `count` best tokens in front of candidates_, in order. False when there are fewer, or
/// limit_ is less. A draw rarely looks far, and ordering the whole vocabulary would cost more than
/// all the rest of sampling: so in blocks that double.
bool Sampler::rank(std::size_t count) {
  if (count > limit_) return false;
  if (count <= ranked_) return true;
  if (count > candidates_.size()) gather(count);
  if (count > candidates_.size()) return false;
  constexpr std::size_t first_block = 64;
  const std::size_t ahead = std::max({first_block, 2 * ranked_, count});
  const std::size_t end = std::min({ahead, candidates_.size(), limit_});
  const auto begin_at = candidates_.begin() + static_cast<std::ptrdiff_t>(ranked_);
  const auto end_at = candidates_.begin() + static_cast<std::ptrdiff_t>(end);
  if (end_at != candidates_.end()) {
    std::nth_element(begin_at, end_at, candidates_.end(), better);
  }
  std::sort(begin_at, end_at, better);
  ranked_ = end;
  return true;
}

/// Adds to candidates_ the next best tokens, so that there are `count` at least, or all.
void Sampler::gather(std::size_t count) {
  constexpr std::size_t first = 64;
  constexpr std::size_t growth = 4;
  const std::size_t ahead = std::max(first, growth * candidates_.size());
  const std::size_t wanted = std::max(count, std::min({ahead, limit_, maxima_.size()}));
  float from = kForbidden;
  if (wanted <= maxima_.size()) {
    // As many groups of blocks as are wanted hold a logit that is not below `from`. With four times
    // as many groups few of them hold two, and they are ordered faster than all blocks.
    group_maxima_.clear();
    const std::size_t size = std::max<std::size_t>(1, maxima_.size() / (4 * wanted));
    for (auto rest = std::span<const float>(maxima_); !rest.empty();) {
      const auto group = rest.first(std::min(size, rest.size()));
      group_maxima_.push_back(*std::max_element(group.begin(), group.end()));
      rest = rest.subspan(group.size());
    }
    const auto last = group_maxima_.begin() + static_cast<std::ptrdiff_t>(wanted) - 1;
    std::nth_element(group_maxima_.begin(), last, group_maxima_.end(), std::greater<>());
    from = *last;
  }
  for (std::size_t b = 0; b < maxima_.size(); ++b) {
    if (maxima_[b] < from) continue;
    const std::size_t end = std::min(logits_.size(), (b + 1) * kLogitBlock);
    for (std::size_t id = b * kLogitBlock; id < end; ++id) {
      const float logit = logits_[id];
      if (logit >= from && logit < gathered_from_ && logit != kForbidden) {
        candidates_.push_back({static_cast<TokenId>(id), logit});
      }
    }
  }
  gathered_from_ = from;
}

/// A token's probability relative to the best one's. The difference is taken before the division,
/// so no temperature, however small, overflows.
double Sampler::weight(float logit) const noexcept {
  const double temperature = options_.temperature == 0.0F ? 1.0 : double{options_.temperature};
  return std::exp((double{logit} - best_logit_) / temperature);
}

TokenId Sampler::sample(std::span<const float> logits, std::span<const TokenId> history,
                        std::span<const TokenId> forbidden) {
  shape(logits, history, forbidden);
  const double u = uniform(options_.seed, step_++);
  if (!mass_.exact()) {
    if (const auto id = draw_within_bounds(u)) return *id;
    sum_exactly();
  }
  // As pick(), but ranks candidates only as far as u reaches.
  double cumulative = 0;
  TokenId last = 0;
  for (std::size_t i = 0; rank(i + 1); ++i) {
    const double probability = weight(candidates_[i].logit) / mass_.low;
    cumulative += probability;
    if (cumulative > u) return candidates_[i].id;
    if (probability > 0) last = candidates_[i].id;
  }
  return last;
}

/// The token that the exact mass would give, where the bounds leave no doubt about it.
std::optional<TokenId> Sampler::draw_within_bounds(double u) {
  constexpr double rounding = 1e-9;  // of as many additions as any vocabulary has tokens
  double cumulative = 0;
  for (std::size_t i = 0; rank(i + 1); ++i) {
    cumulative += weight(candidates_[i].logit);
    if (cumulative * (1 - rounding) > u * mass_.high) return candidates_[i].id;
    if (cumulative * (1 + rounding) > u * mass_.low) break;
  }
  return std::nullopt;
}

std::vector<TokenProbability> Sampler::distribution(std::span<const float> logits,
                                                    std::span<const TokenId> history,
                                                    std::span<const TokenId> forbidden) {
  shape(logits, history, forbidden);
  if (!mass_.exact()) sum_exactly();
  std::vector<TokenProbability> distribution;
  for (std::size_t i = 0; rank(i + 1); ++i) {
    distribution.push_back({candidates_[i].id, weight(candidates_[i].logit) / mass_.low});
  }
  return distribution;
}

}  // namespace openelm
