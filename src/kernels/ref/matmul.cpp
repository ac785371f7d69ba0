#include <cmath>

#include "kernels/ref/ref.h"
#include "kernels/ref/stored.h"

namespace openelm::kernels::ref {
namespace {

/// Where W[row][k] lies in its tile.
template <WeightType Type>
std::size_t index_in_tile(std::int32_t row, std::int32_t k) {
  if constexpr (Type == WeightType::bf16) {  // pairs of k within a row's 32-bit lane
    return static_cast<std::size_t>((k / 2) * 32 + row * 2 + k % 2);
  } else {
    return static_cast<std::size_t>(k * 16 + row);
  }
}

template <WeightType Type>
float dot(const MatmulArgs& args, std::int32_t tile, std::int32_t row, const float* x) {
  const std::byte* data = args.w->tile(tile);
  float sum = 0.0F;
  for (std::int32_t k = 0; k < args.w->k_padded; ++k) {
    sum = std::fma(load_stored<Type>(data, index_in_tile<Type>(row, k)), x[k], sum);
  }
  return sum;
}

}  // namespace

template <WeightType Type, Epilogue Op>
void matmul(const MatmulArgs& args) {
  for (std::int32_t token = 0; token < args.m; ++token) {
    const float* x = args.x + token * args.x_stride;
    float* y = args.y + token * args.y_stride;
    const std::int32_t step = Op == Epilogue::swiglu ? 2 : 1;
    for (std::int32_t tile = args.tile_begin; tile < args.tile_end; tile += step) {
      for (std::int32_t row = 0; row < kTileRows; ++row) {
        const float sum = dot<Type>(args, tile, row, x);
        float& out = y[tile / step * kTileRows + row];
        if constexpr (Op == Epilogue::store) out = sum;
        if constexpr (Op == Epilogue::add) out = out + sum;
        if constexpr (Op == Epilogue::silu) out = silu(sum);
        if constexpr (Op == Epilogue::swiglu) out = silu(sum) * dot<Type>(args, tile + 1, row, x);
      }
    }
  }
}

template void matmul<WeightType::f32, Epilogue::store>(const MatmulArgs&);
template void matmul<WeightType::f32, Epilogue::add>(const MatmulArgs&);
template void matmul<WeightType::f32, Epilogue::swiglu>(const MatmulArgs&);
template void matmul<WeightType::f32, Epilogue::silu>(const MatmulArgs&);
template void matmul<WeightType::f16, Epilogue::store>(const MatmulArgs&);
template void matmul<WeightType::f16, Epilogue::add>(const MatmulArgs&);
template void matmul<WeightType::f16, Epilogue::swiglu>(const MatmulArgs&);
template void matmul<WeightType::f16, Epilogue::silu>(const MatmulArgs&);
template void matmul<WeightType::bf16, Epilogue::store>(const MatmulArgs&);
template void matmul<WeightType::bf16, Epilogue::add>(const MatmulArgs&);
template void matmul<WeightType::bf16, Epilogue::swiglu>(const MatmulArgs&);
template void matmul<WeightType::bf16, Epilogue::silu>(const MatmulArgs&);

}  // namespace openelm::kernels::ref
