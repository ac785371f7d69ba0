#pragma once

#include "kernels/blocking.h"
#include "kernels/generic/affine_strip.h"
#include "kernels/generic/epilogue.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// All tiles of `strip` with all tokens, in pieces that fit the registers. With one token, tile
/// follows tile as in memory: a single stream is what prefetching does best.
template <class V, class Ints, int Bits, int Block>
void accumulate_affine_all(const AffineStrip& strip, std::int32_t n_tiles, std::int32_t n_tokens) {
  const auto run = [](auto tiles, const AffineStrip& piece, int tokens) {
    with_count<Ints::kMaxTokens>(tokens, [&](auto count) {
      accumulate_affine<V, Ints, Bits, Block, decltype(tiles)::value, decltype(count)::value>(
          piece);
    });
  };
  for (std::int32_t tile = 0; tile < n_tiles;) {
    const bool together = n_tokens > 1 && n_tiles - tile >= Ints::kTiles;
    const int taken = together ? Ints::kTiles : 1;
    int fetched = 0;
    for_each_part(n_tokens, Ints::kMaxTokens, [&](std::int32_t token, int tokens) {
      AffineStrip piece = part_of(strip, tile, token);
      // The first parts fetch a tile each, the others what is there already.
      piece.ahead = fetched < taken ? strip.ahead + (tile + fetched++) * strip.w_tile : piece.w;
      together ? run(Count<Ints::kTiles>{}, piece, tokens) : run(Count<1>{}, piece, tokens);
    });
    tile += taken;
  }
}

/// 64 bytes of 4-bit quants as two quads of bytes, 128 bytes.
[[gnu::always_inline]] inline void widen_nibbles(const std::byte* from, std::byte* to) {
  const auto* const pairs = reinterpret_cast<const std::uint8_t*>(from);
  auto* const quants = reinterpret_cast<std::uint8_t*>(to);
  for (int i = 0; i < 64; ++i) {
    quants[i] = pairs[i] & 0x0F;
    quants[64 + i] = pairs[i] >> 4;
  }
}

/// A run of groups of 4-bit tiles, rewritten at `out` as 8-bit ones.
AffineStrip widen_tiles(const AffineStrip& strip, std::int32_t n_tiles, std::byte* out) {
  const auto header = static_cast<std::ptrdiff_t>(2 * 16 * size_of(strip.type));
  AffineStrip wide = strip;
  wide.w = out;
  wide.w_group = header + strip.group_size * 16;
  wide.w_tile =
      wide.w_group * strip.n_groups;  // `ahead` is fetched twice as far as needed: harmless
  for (std::int32_t tile = 0; tile < n_tiles; ++tile) {
    const std::byte* from = strip.w + tile * strip.w_tile;
    for (std::int32_t group = 0; group < strip.n_groups; ++group) {
      __builtin_memcpy(out, from, static_cast<std::size_t>(header));
      out += header;
      for (std::ptrdiff_t at = header; at < strip.w_group; at += 64, out += 128) {
        widen_nibbles(from + at, out);
      }
      from += strip.w_group;
    }
  }
  return wide;
}

/// Groups of tiles pass over all tokens, a run of weight groups at a time: few tiles, so that their
/// weights stay in the first cache while the tokens stream from the second. With many tokens 4-bit
/// weights are widened once for all of them.
template <class V, class Ints, int Bits, int Block>
void affine_matmul_in_blocks(const MatmulArgs& args) {
  const PackedMatrix& w = *args.w;
  const std::int32_t n_groups = w.k / w.format.group_size;
  const bool few_tokens = args.m <= kAffineFewTokens;
  const std::int32_t n_runs = few_tokens ? 1 : (w.k + kAffineBlockK - 1) / kAffineBlockK;
  const std::int32_t run = (n_groups + n_runs - 1) / n_runs;
  const std::ptrdiff_t x_group =
      w.format.group_size / Block * static_cast<std::ptrdiff_t>(sizeof(QuantisedBlock)) +
      w.format.group_size * Ints::kValueBytes;
  const auto w_group = static_cast<std::ptrdiff_t>(w.group_bytes());
  const std::ptrdiff_t y_tile = std::ptrdiff_t{args.m} * 16;
  auto* const widened = reinterpret_cast<std::byte*>(args.scratch + kMatmulGroupTiles * y_tile);

  for (std::int32_t begin = args.tile_begin; begin < args.tile_end; begin += kMatmulGroupTiles) {
    const std::int32_t left = args.tile_end - begin;
    const std::int32_t end = begin + (left < kMatmulGroupTiles ? left : kMatmulGroupTiles);
    for (std::int32_t tile = begin; tile < end; tile += kAffineBlockTiles) {
      const std::int32_t n_tiles = end - tile < kAffineBlockTiles ? end - tile : kAffineBlockTiles;
      for (std::int32_t group = 0; group < n_groups; group += run) {
        const AffineStrip strip{
            .w = w.tile(tile) + group * w_group,
            .w_tile = static_cast<std::ptrdiff_t>(w.tile_bytes()),
            .w_group = w_group,
            .type = w.format.type,
            .group_size = w.format.group_size,
            .n_groups = n_groups - group < run ? n_groups - group : run,
            .x = args.xq + group * x_group,
            .x_token = args.xq_stride,
            .y = args.scratch + (tile - begin) * y_tile,
            .y_tile = y_tile,
            .y_token = 16,
            .resume = group > 0,
            .ahead = group + run < n_groups ? w.tile(tile) + (group + run) * w_group
                                            : w.tile(tile + n_tiles),
        };
        if (Bits == 4 && !few_tokens) {
          const AffineStrip wide = widen_tiles(strip, n_tiles, widened);
          accumulate_affine_all<V, Ints, 8, Block>(wide, n_tiles, args.m);
        } else {
          accumulate_affine_all<V, Ints, Bits, Block>(strip, n_tiles, args.m);
        }
      }
    }
    apply_epilogue<V>(args, begin, end);
  }
}

template <class V, class Ints, int Bits>
void affine_matmul(const MatmulArgs& args) {
  if (args.w->x_block == 16) {
    affine_matmul_in_blocks<V, Ints, Bits, 16>(args);
  } else {
    affine_matmul_in_blocks<V, Ints, Bits, 32>(args);
  }
}

}  // namespace
}  // namespace openelm::kernels
