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
void tile_dots(const PackedMatrix& w, std::int32_t tile, const float* x, float (&dots)[kTileRows]) {
  const std::byte* data = w.tile(tile);
  for (std::int32_t row = 0; row < kTileRows; ++row) {
    float sum = 0.0F;
    for (std::int32_t k = 0; k < w.k_padded; ++k) {
      sum = std::fma(load_stored<Type>(data, index_in_tile<Type>(row, k)), x[k], sum);
    }
    dots[row] = sum;
  }
}

float load_number(WeightType type, const std::byte* data, std::size_t i) {
  if (type == WeightType::f32) return load_stored<WeightType::f32>(data, i);
  if (type == WeightType::f16) return load_stored<WeightType::f16>(data, i);
  return load_stored<WeightType::bf16>(data, i);
}

/// Quant `i` of row `row` in a group of a tile.
template <int Bits>
std::int32_t quant(const std::byte* quants, std::int32_t row, std::int32_t i) {
  constexpr std::int32_t kPerLane = Bits == 8 ? 4 : 8;
  const auto byte =
      static_cast<std::int32_t>(quants[i / kPerLane * kTileRows * 4 + row * 4 + i % 4]);
  return Bits == 8 ? byte : byte >> (i % kPerLane / 4 * 4) & 0xF;
}

template <int Bits>
void affine_tile_dots(const PackedMatrix& w, std::int32_t tile, const std::byte* xq,
                      float (&dots)[kTileRows]) {
  const auto block_bytes = sizeof(QuantisedBlock) + static_cast<std::size_t>(w.x_block);
  for (float& dot : dots) dot = 0.0F;
  const std::byte* at = w.tile(tile);
  for (std::int32_t first = 0; first < w.k; first += w.format.group_size) {
    const std::int32_t n_blocks = w.format.group_size / w.x_block;
    for (std::int32_t row = 0; row < kTileRows; ++row) {
      float dot = 0.0F;
      float total = 0.0F;
      for (std::int32_t b = 0; b < n_blocks; ++b) {
        const std::byte* const x = xq + static_cast<std::size_t>(b) * block_bytes;
        QuantisedBlock block;
        std::memcpy(&block, x, sizeof block);
        if (b == 0) total = block.total;
        std::int32_t sum = 0;
        for (std::int32_t i = 0; i < w.x_block; ++i) {
          sum += quant<Bits>(at + w.group_header_bytes(), row, b * w.x_block + i) *
                 static_cast<std::int8_t>(x[sizeof block + static_cast<std::size_t>(i)]);
        }
        dot = std::fma(static_cast<float>(sum), block.scale, dot);
      }
      const auto lane = static_cast<std::size_t>(row);
      dots[row] = std::fma(dot, load_number(w.format.type, at, lane), dots[row]);
      dots[row] = std::fma(load_number(w.format.type, at, kTileRows + lane), total, dots[row]);
    }
    at += w.group_bytes();
    xq += static_cast<std::size_t>(n_blocks) * block_bytes;
  }
}

/// Turns the dot products of a tile and, for swiglu, of the next one into y[0 .. 15].
void finish_row(Epilogue epilogue, const float* dots, const float* next_dots, float* y) {
  for (std::int32_t row = 0; row < kTileRows; ++row) {
    if (epilogue == Epilogue::store) y[row] = dots[row];
    if (epilogue == Epilogue::add) y[row] = y[row] + dots[row];
    if (epilogue == Epilogue::silu) y[row] = silu(dots[row]);
    if (epilogue == Epilogue::swiglu) y[row] = silu(dots[row]) * next_dots[row];
  }
}

/// Calls tile_dots(tile, token, dots) for what the arguments ask for, and finishes the rows.
template <typename TileDots>
void for_each_tile(const MatmulArgs& args, const TileDots& tile_dots) {
  const std::int32_t step = args.epilogue == Epilogue::swiglu ? 2 : 1;
  for (std::int32_t token = 0; token < args.m; ++token) {
    for (std::int32_t tile = args.tile_begin; tile < args.tile_end; tile += step) {
      float dots[kTileRows];
      float next_dots[kTileRows];
      tile_dots(tile, token, dots);
      if (step == 2) tile_dots(tile + 1, token, next_dots);
      finish_row(args.epilogue, dots, next_dots,
                 args.y + token * args.y_stride + tile / step * kTileRows);
    }
  }
}

}  // namespace

template <WeightType Type>
void matmul(const MatmulArgs& args) {
  for_each_tile(args, [&](std::int32_t tile, std::int32_t token, float(&dots)[kTileRows]) {
    tile_dots<Type>(*args.w, tile, args.x + token * args.x_stride, dots);
  });
}

template <int Bits>
void affine_matmul(const MatmulArgs& args) {
  for_each_tile(args, [&](std::int32_t tile, std::int32_t token, float(&dots)[kTileRows]) {
    affine_tile_dots<Bits>(*args.w, tile, args.xq + token * args.xq_stride, dots);
  });
}

template void matmul<WeightType::f32>(const MatmulArgs&);
template void matmul<WeightType::f16>(const MatmulArgs&);
template void matmul<WeightType::bf16>(const MatmulArgs&);
template void affine_matmul<8>(const MatmulArgs&);
template void affine_matmul<4>(const MatmulArgs&);

}  // namespace openelm::kernels::ref
