#pragma once

#include "kernels/blocking.h"
#include "kernels/generic/epilogue.h"
#include "kernels/generic/microkernel.h"
#include "kernels/generic/sources.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// Groups of tiles pass over all tokens, a block of k at a time, so that the block of weights stays
/// in the second cache and the tokens' part of x in the first. Sums wait in scratch between blocks;
/// going on from there leaves the order of the additions as it was.
template <class V, WeightType Type>
void matmul(const MatmulArgs& args) {
  const TileSource<V, Type> source{};
  const std::int32_t k_padded = args.w->k_padded;
  const std::ptrdiff_t tile_bytes = source.pair_stride() * (k_padded / 2);
  const std::int32_t k_block = args.m <= V::kMaxTokens[0] ? k_padded : kMatmulBlockK;

  for (std::int32_t begin = args.tile_begin; begin < args.tile_end; begin += kMatmulGroupTiles) {
    const std::int32_t left = args.tile_end - begin;
    const std::int32_t n_tiles = left < kMatmulGroupTiles ? left : kMatmulGroupTiles;
    for (std::int32_t k = 0; k < k_padded; k += k_block) {
      const Strip strip{
          .w = args.w->tiles + begin * tile_bytes + source.pair_stride() * (k / 2),
          .w_tile = tile_bytes,
          .prefetch = kMatmulPrefetchBytes,
          .x = args.x + k,
          .x_token = args.x_stride,
          .y = args.scratch,
          .y_tile = std::ptrdiff_t{args.m} * 16,
          .y_token = 16,
          .k = k_padded - k < k_block ? k_padded - k : k_block,
          .resume = k > 0,
      };
      accumulate_all<V>(source, strip, n_tiles, args.m);
    }
    apply_epilogue<V>(args, begin, begin + n_tiles);
  }
}

}  // namespace
}  // namespace openelm::kernels
