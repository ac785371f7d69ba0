#pragma once

#include <cstdint>

#include "kernels/kernels.h"

/// The readable form of every kernel: scalar loops in the canonical order of kernels.h. They run on
/// any CPU, and the tests hold every other variant to their bits.
namespace openelm::kernels::ref {

/// kernels.h states the algorithm.
float exp(float x);

/// z / (1 + exp(-z)).
float silu(float z);

/// The canonical fold of 16 partial sums by halves.
float fold_sum(float (&partial)[16]);

template <WeightType>
void matmul(const MatmulArgs& args);

/// Affine weights of `Bits` bits.
template <int Bits>
void affine_matmul(const MatmulArgs& args);

/// How a group of floats becomes whole numbers of -127 .. 127 (see KernelTable::quantise).
struct QuantiseScale {
  float scale;   ///< NaN: the group is not finite
  float factor;  ///< 0: the group counts as zero
  std::int32_t round(float x) const;
};
QuantiseScale quantise_scale(const float* x, std::int32_t n);

/// Whole numbers of one byte in their own order.
void quantise(const float* x, std::int32_t k, std::int32_t group_size, std::int32_t block,
              std::byte* xq);

template <KvType>
void scores(const ScoresArgs& args);

template <KvType>
void values(const ValuesArgs& args);

float softmax_row(float* s, std::int32_t n, std::int32_t valid, float* sum);
void softmax_merge(float* m, float* l, float* o, float m2, float l2, const float* o2,
                   std::int32_t n);
void divide(const float* x, float divisor, std::int32_t n, float* y);
void rms_norm(const float* x, const float* weight, std::int32_t n, float eps, float* y);
void rope(float* x, const float* cos, const float* sin, std::int32_t half);
void scale(float* x, float factor, std::int32_t n);

void multiply(float* x, const float* by, std::int32_t n);

template <KvType>
float narrow(const float* x, std::int32_t n, void* y);
float narrow_q8(const float* x, std::int32_t n, void* y);

}  // namespace openelm::kernels::ref
