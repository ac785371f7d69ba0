#pragma once

#include <cstdint>
#include <span>

#include <openelm/config.h>

#include "kernels/kernels.h"

namespace openelm {

/// What the softmax of one row of logits is made of. Exponentials in float32 by the engine's
/// kernels, sums of blocks in double: within 1e-6, and the same bits on every machine.
struct RowMass {
  double log_sum = 0;     ///< log Σ exp(logit); not finite when a logit is NaN or infinite
  double mean_logit = 0;  ///< Σ softmax * logit; only where it was asked for

  double entropy() const noexcept { return log_sum - mean_logit; }  ///< in nats
};

/// `with_mean`: mean_logit too, which costs another look at the row.
RowMass row_mass(const kernels::KernelTable& kernels, std::span<const float> logits,
                 bool with_mean = false) noexcept;

/// How many tokens come before `id` in the order of logits, best first, ties by lower id; plus 1.
std::int32_t rank_of(std::span<const float> logits, TokenId id) noexcept;

/// The token of rank 1.
TokenId best_token(std::span<const float> logits) noexcept;

}  // namespace openelm
