#include "runtime/logit_row.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace openelm {
namespace {

/// Few enough exponentials for their float32 sum, and small enough for the first cache.
constexpr std::size_t kBlock = 1024;

}  // namespace

RowMass row_mass(const kernels::KernelTable& kernels, std::span<const float> logits,
                 bool with_mean) noexcept {
  double best = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double weighted = 0;  // Σ exp(logit - best) * logit
  alignas(64) float block[kBlock];
  while (!logits.empty()) {
    const std::size_t n = std::min(kBlock, logits.size());
    std::copy_n(logits.begin(), n, block);
    float block_sum = 0;
    const auto count = static_cast<std::int32_t>(n);
    const double block_best = double{kernels.softmax_row(block, count, count, &block_sum)};
    double block_weighted = 0;
    if (with_mean) {
      for (std::size_t i = 0; i < n; ++i) block_weighted += double{block[i]} * double{logits[i]};
    }
    const double higher = std::max(best, block_best);
    const double old_share = std::exp(best - higher);
    const double new_share = std::exp(block_best - higher);
    sum = sum * old_share + double{block_sum} * new_share;
    weighted = weighted * old_share + block_weighted * new_share;
    best = higher;
    logits = logits.subspan(n);
  }
  return {best + std::log(sum), weighted / sum};
}

std::int32_t rank_of(std::span<const float> logits, TokenId id) noexcept {
  const auto at = static_cast<std::size_t>(id);
  const float own = logits[at];
  std::int32_t before = 0;
  for (std::size_t i = 0; i < at; ++i) before += static_cast<std::int32_t>(logits[i] >= own);
  for (std::size_t i = at + 1; i < logits.size(); ++i) {
    before += static_cast<std::int32_t>(logits[i] > own);
  }
  return before + 1;
}

TokenId best_token(std::span<const float> logits) noexcept {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace openelm
