#include "runtime/logit_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include <openelm/error.h>

namespace openelm {
namespace {

// Vectors as GCC and Clang know them on every machine: the baseline's instructions do, and the
// results below do not depend on their width.
constexpr std::size_t kLanes = 4;
using Floats [[gnu::vector_size(kLanes * sizeof(float))]] = float;
using Ints [[gnu::vector_size(kLanes * sizeof(float))]] = std::int32_t;
static_assert(kLogitBlock % kLanes == 0);

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

Floats load(const float* from) {
  Floats values;
  std::memcpy(&values, from, sizeof values);
  return values;
}

float largest(Floats values) {
  float result = values[0];
  for (std::size_t i = 1; i < kLanes; ++i) result = std::max(result, values[i]);
  return result;
}

bool any(Ints mask) {
  std::int32_t bits = 0;
  for (std::size_t i = 0; i < kLanes; ++i) bits |= mask[i];
  return bits != 0;
}

/// Calls visit(b, block) for every block of kLogitBlock logits; the last one is filled up.
template <typename Visit>
void for_each_block(std::span<const float> logits, Visit visit) {
  const std::size_t whole = logits.size() / kLogitBlock;
  for (std::size_t b = 0; b < whole; ++b) visit(b, logits.data() + b * kLogitBlock);
  const std::span<const float> rest = logits.subspan(whole * kLogitBlock);
  if (rest.empty()) return;
  std::array<float, kLogitBlock> filled;
  std::copy(rest.begin(), rest.end(), filled.begin());
  std::fill(filled.begin() + static_cast<std::ptrdiff_t>(rest.size()), filled.end(), kForbidden);
  visit(whole, filled.data());
}

[[noreturn]] void fail_not_finite(std::span<const float> logits) {
  const auto fault = std::find_if(logits.begin(), logits.end(),
                                  [](float x) { return !std::isfinite(x) && x != kForbidden; });
  throw Error("cannot sample: the logit of token " + std::to_string(fault - logits.begin()) +
              " is " + std::to_string(*fault));
}

constexpr float kLowestPower = -126.0F;

/// 2^x for kLowestPower <= x <= 0, to a relative error of 3e-6; below, as at kLowestPower.
Floats exp2_estimate(Floats x) {
  constexpr float to_integer = 0x1.8p23F;  // added, it leaves the nearest integer in the low bits
  x = x > kLowestPower ? x : Floats{} + kLowestPower;
  const Floats shifted = x + to_integer;
  const Floats f = x - (shifted - to_integer);
  // A minimax fit on |f| <= 1/2.
  Floats p = f * 0x1.3997d4p-7F + 0x1.ca144p-5F;
  p = p * f + 0x1.ec06dap-3F;
  p = p * f + 0x1.62e0dcp-1F;
  p = p * f + 0x1.ffffe8p-1F;
  return std::bit_cast<Floats>(std::bit_cast<Ints>(p) + (std::bit_cast<Ints>(shifted) << 23));
}

}  // namespace

void find_block_maxima(std::span<const float> logits, std::vector<float>& maxima) {
  maxima.resize((logits.size() + kLogitBlock - 1) / kLogitBlock);
  Ints faults{};
  for_each_block(logits, [&](std::size_t b, const float* block) {
    Floats maximum = Floats{} + kForbidden;
    for (std::size_t i = 0; i < kLogitBlock; i += kLanes) {
      const Floats values = load(block + i);
      faults |= ~(values <= std::numeric_limits<float>::max());  // NaN compares false
      maximum = values > maximum ? values : maximum;
    }
    maxima[b] = largest(maximum);
  });
  if (any(faults)) fail_not_finite(logits);
}

MassBounds bound_mass(std::span<const float> logits, std::span<const float> maxima, float best,
                      float temperature) noexcept {
  constexpr float log2_e = 0x1.715476p+0F;
  const float scale = log2_e / temperature;
  // At the ends of float32's range the differences underflow, or overflow before they are scaled.
  if (!(scale > 1e-30F && scale < 1e6F)) return {1, static_cast<double>(logits.size())};

  constexpr float negligible = -32;  // power of 2; added to the upper bound alone
  const float lowest = best + negligible / scale;
  double sum = 0;
  std::size_t skipped = 0;
  for_each_block(logits, [&](std::size_t b, const float* block) {
    if (maxima[b] < lowest) {
      ++skipped;
      return;
    }
    Floats weights{};
    for (std::size_t i = 0; i < kLogitBlock; i += kLanes) {
      weights += exp2_estimate((load(block + i) - best) * scale);
    }
    for (std::size_t i = 0; i < kLanes; ++i) sum += double{weights[i]};
  });
  // Of the exponent's three roundings, 3 * 2^-24 |x|, only those above the negligible matter; with
  // the fit and the sums of a block they come to less than this.
  constexpr double error = 2e-5;
  const double bound = static_cast<double>(skipped * kLogitBlock) * 0x1.01p-32;
  return {sum * (1 - error), (sum + bound) * (1 + error)};
}

}  // namespace openelm
