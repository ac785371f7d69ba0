#include "runtime/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include <openelm/error.h>

namespace openelm {
namespace {

/// A softmax's denominator. The largest logit is kept apart, so that nothing overflows and the
/// digits of small differences survive large logits.
class Normaliser {
 public:
  explicit Normaliser(std::span<const float> logits)
      : best_(*std::max_element(logits.begin(), logits.end())) {
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - best_);
    log_sum_ = std::log(sum);
  }

  double logprob(float logit) const noexcept { return (logit - best_) - log_sum_; }

 private:
  double best_;
  double log_sum_;
};

void require_within(std::span<const float> logits, TokenId id) {
  if (id >= 0 && static_cast<std::size_t>(id) < logits.size()) return;
  throw Error("token id " + std::to_string(id) + " is outside the vocabulary of " +
              std::to_string(logits.size()));
}

}  // namespace

double log_probability(std::span<const float> logits, TokenId id) {
  require_within(logits, id);
  return Normaliser(logits).logprob(logits[static_cast<std::size_t>(id)]);
}

TokenLogprobs token_logprobs(std::span<const float> logits, TokenId chosen, std::size_t count) {
  require_within(logits, chosen);
  const Normaliser normaliser(logits);
  const auto logit = [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; };

  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<std::ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](TokenId a, TokenId b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  });

  TokenLogprobs result{chosen, normaliser.logprob(logit(chosen)), {}};
  std::for_each(ids.begin(), end,
                [&](TokenId id) { result.top.emplace_back(id, normaliser.logprob(logit(id))); });
  return result;
}

}  // namespace openelm
