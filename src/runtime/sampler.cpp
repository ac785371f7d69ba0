#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <openelm/error.h>
#include <openelm/sampling.h>

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

[[noreturn]] void fail_not_finite(std::size_t id, float logit) {
  throw Error("cannot sample: the logit of token " + std::to_string(id) + " is " +
              std::to_string(logit));
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

/// Leaves in candidates_ what may be drawn, and in mass_ the sum of their weights.
void Sampler::shape(std::span<const float> logits, std::span<const TokenId> history,
                    std::span<const TokenId> forbidden) {
  adjust(logits, history, forbidden);
  candidates_.clear();
  ranked_ = 0;
  if (options_.temperature == 0.0F) {
    keep_best(1);
  } else if (options_.top_k > 0) {
    keep_best(static_cast<std::size_t>(std::min(options_.top_k, vocab_size_)));
  } else {
    keep_all();
  }
  if (candidates_.empty()) throw Error("cannot sample: every token is forbidden");

  // Best first with top-k, else by ascending id: fixed orders, so the sum is the same everywhere.
  best_logit_ = std::min_element(candidates_.begin(), candidates_.end(), better)->logit;
  mass_ = 0;
  for (const Candidate& candidate : candidates_) mass_ += weight(candidate);
  if (options_.top_p < 1.0F || options_.min_p > 0.0F) truncate();
}

/// candidates_ = the `count` best tokens, in order, in one pass over the logits. Most tokens fail
/// one comparison with the count-th best so far; those that pass collect until they are as many
/// again, and are then cut back.
void Sampler::keep_best(std::size_t count) {
  float threshold = kForbidden;
  for (std::size_t id = 0; id < logits_.size(); ++id) {
    const float logit = logits_[id];
    if (logit <= threshold) continue;  // false for NaN; a tie loses to the lower ids before it
    if (!std::isfinite(logit)) fail_not_finite(id, logit);
    candidates_.push_back({static_cast<TokenId>(id), logit});
    if (candidates_.size() == 2 * count) {
      const auto worst = candidates_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
      std::nth_element(candidates_.begin(), worst, candidates_.end(), better);
      threshold = worst->logit;
      candidates_.resize(count);
    }
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
  candidates_.resize(std::min(count, candidates_.size()));
  ranked_ = candidates_.size();
}

void Sampler::keep_all() {
  candidates_.reserve(logits_.size());
  for (std::size_t id = 0; id < logits_.size(); ++id) {
    const float logit = logits_[id];
    if (logit == kForbidden) continue;
    if (!std::isfinite(logit)) fail_not_finite(id, logit);
    candidates_.push_back({static_cast<TokenId>(id), logit});
  }
}

/// Cuts candidates_ after top-p's and min-p's last one, and mass_ with it.
void Sampler::truncate() {
  const double top_p = options_.top_p;
  const double min_p = options_.min_p;
  std::size_t kept = 0;
  double kept_mass = 0;
  while (kept < candidates_.size()) {
    rank(kept + 1);
    const double next = weight(candidates_[kept]);
    if (kept > 0 && next < min_p) break;  // the best token's weight is 1
    kept_mass += next;
    ++kept;
    if (top_p < 1.0 && kept_mass / mass_ >= top_p) break;
  }
  candidates_.resize(kept);
  ranked_ = std::min(ranked_, kept);
  mass_ = kept_mass;
}

/// Puts the `count` best candidates in front, in order. Blocks that double: a draw rarely looks
/// past the first, and ordering the whole vocabulary would cost more than all the rest of sampling.
void Sampler::rank(std::size_t count) {
  constexpr std::size_t first_block = 64;
  while (ranked_ < count) {
    const std::size_t end = std::min(candidates_.size(), std::max(first_block, 2 * ranked_));
    const auto begin_at = candidates_.begin() + static_cast<std::ptrdiff_t>(ranked_);
    const auto end_at = candidates_.begin() + static_cast<std::ptrdiff_t>(end);
    if (end_at != candidates_.end()) {
      std::nth_element(begin_at, end_at, candidates_.end(), better);
    }
    std::sort(begin_at, end_at, better);
    ranked_ = end;
  }
}

/// A candidate's probability relative to the best one's. The difference is taken before the
/// division, so no temperature, however small, overflows.
double Sampler::weight(const Candidate& candidate) const noexcept {
  const double temperature = options_.temperature == 0.0F ? 1.0 : double{options_.temperature};
  return std::exp((double{candidate.logit} - best_logit_) / temperature);
}

TokenId Sampler::sample(std::span<const float> logits, std::span<const TokenId> history,
                        std::span<const TokenId> forbidden) {
  shape(logits, history, forbidden);
  const double u = uniform(options_.seed, step_++);
  // As pick(), but ranks candidates only as far as u reaches.
  double cumulative = 0;
  TokenId last = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    rank(i + 1);
    const double probability = weight(candidates_[i]) / mass_;
    cumulative += probability;
    if (cumulative > u) return candidates_[i].id;
    if (probability > 0) last = candidates_[i].id;
  }
  return last;
}

std::vector<TokenProbability> Sampler::distribution(std::span<const float> logits,
                                                    std::span<const TokenId> history,
                                                    std::span<const TokenId> forbidden) {
  shape(logits, history, forbidden);
  rank(candidates_.size());
  std::vector<TokenProbability> distribution;
  distribution.reserve(candidates_.size());
  for (const Candidate& candidate : candidates_) {
    distribution.push_back({candidate.id, weight(candidate) / mass_});
  }
  return distribution;
}

}  // namespace openelm
