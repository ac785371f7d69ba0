#pragma once

#include "kernels/generic/vector_math.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// Turns the dot products of tiles [begin, end), left in args.scratch as [tile][token][16], into y.
template <class V>
void apply_epilogue(const MatmulArgs& args, std::int32_t begin, std::int32_t end) {
  const std::int32_t step = args.epilogue == Epilogue::swiglu ? 2 : 1;
  const std::ptrdiff_t tile_floats = std::ptrdiff_t{args.m} * 16;
  for (std::int32_t token = 0; token < args.m; ++token) {
    for (std::int32_t tile = begin; tile < end; tile += step) {
      const float* sum = args.scratch + (tile - begin) * tile_floats + token * 16;
      float* y = args.y + token * args.y_stride + tile / step * 16;
      V result = V::load(sum);
      switch (args.epilogue) {
        case Epilogue::store:
          break;
        case Epilogue::add:
          result = V::add(V::load(y), result);
          break;
        case Epilogue::silu:
          result = silu(result);
          break;
        case Epilogue::swiglu:
          result = V::mul(silu(result), V::load(sum + tile_floats));
          break;
      }
      result.store(y);
    }
  }
}

}  // namespace
}  // namespace openelm::kernels
