#pragma once

#include "kernels/generic/affine_matmul.h"
#include "kernels/generic/attention.h"
#include "kernels/generic/elementwise.h"
#include "kernels/generic/matmul.h"
#include "kernels/generic/quantise.h"
#include "kernels/generic/softmax.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// Every kernel over the vector type `V`, which the instruction set's vec.h defines.
template <class V, class Ints>
constexpr KernelTable make_table(const char* name) {
  return {
      .name = name,
      .matmul = {matmul<V, WeightType::f32>, matmul<V, WeightType::f16>,
                 matmul<V, WeightType::bf16>, affine_matmul<V, Ints, 8>, affine_matmul<V, Ints, 4>},
      .quantise = quantise<Ints>,
      .quantised_value_bytes = Ints::kValueBytes,
      .scores = {scores<V, KvType::f32>, scores<V, KvType::f16>, scores<V, KvType::bf16>,
                 scores<V, KvType::q8>},
      .values = {values<V, KvType::f32>, values<V, KvType::f16>, values<V, KvType::bf16>,
                 values<V, KvType::q8>},
      .softmax_row = softmax_row<V>,
      .softmax_merge = softmax_merge<V>,
      .divide = divide<V>,
      .rms_norm = rms_norm<V>,
      .rope = rope<V>,
      .scale = scale<V>,
      .multiply = multiply<V>,
      .narrow = {narrow<V, KvType::f32>, narrow<V, KvType::f16>, narrow<V, KvType::bf16>,
                 narrow_q8<V>},
  };
}

}  // namespace
}  // namespace openelm::kernels
