#pragma once

#include "kernels/blocking.h"
#include "kernels/generic/affine_strip.h"
#include "kernels/generic/epilogue.h"
#include "kernels/kernels.h"

namespace openelm::kernels {
namespace {

/// One or two tiles with all tokens, in pieces that fit the registers. Tokens are split evenly.
template <class V, class Ints, int Bits>
void accumulate_affine_all(const AffineStrip& strip, std::int32_t n_tiles, std::int32_t n_tokens) {
  constexpr int kMost = Ints::kMaxTokens;
  const std::int32_t n_blocks = (n_tokens + kMost - 1) / kMost;
  std::int32_t token = 0;
  for (std::int32_t block = 0; block < n_blocks; ++block) {
    const int tokens = (n_tokens - token) / (n_blocks - block);
    AffineStrip piece = strip;
    piece.x += token * strip.x_token;
    piece.y += token * strip.y_token;
    if (block > 0) piece.prefetch = 0;
    const auto kernel = n_tiles == 2 ? affine_strip_kernel<V, Ints, Bits, 2, kMost>(tokens)
                                     : affine_strip_kernel<V, Ints, Bits, 1, kMost>(tokens);
    kernel(piece);
    token += tokens;
  }
}

/// A run of groups of a 4-bit tile, rewritten as an 8-bit one.
template <class Ints>
void widen_nibbles(const AffineStrip& strip, std::int32_t n_tiles, std::byte* out,
                   AffineStrip& wide) {
  const auto header = static_cast<std::ptrdiff_t>(2 * 16 * size_of(strip.type));
  wide = strip;
  wide.w = out;
  wide.w_group = header + strip.group_size * 16;
  wide.w_tile = wide.w_group * strip.n_groups;
  wide.prefetch = 0;
  for (std::int32_t tile = 0; tile < n_tiles; ++tile) {
    const std::byte* from = strip.w + tile * strip.w_tile;
    for (std::int32_t group = 0; group < strip.n_groups; ++group) {
      __builtin_memcpy(out, from, static_cast<std::size_t>(header));
      out += header;
      for (std::ptrdiff_t at = header; at < strip.w_group; at += 64, out += 128) {
        Ints::widen_nibbles(from + at, out);
      }
      from += strip.w_group;
    }
  }
}

/// Pairs of tiles pass over all tokens, a run of groups at a time, so that the run's weights stay
/// in the first cache while the tokens stream from the second. With many tokens 4-bit weights are
/// widened once for all of them.
template <class V, class Ints, int Bits>
void affine_matmul(const MatmulArgs& args) {
  const PackedMatrix& w = *args.w;
  const std::int32_t n_groups = w.k / w.format.group_size;
  const bool few_tokens = args.m <= kAffineFewTokens;
  const std::int32_t run = few_tokens ? n_groups : kAffineBlockK / w.format.group_size;
  const auto x_group =
      static_cast<std::ptrdiff_t>(sizeof(QuantisedGroup)) + w.format.group_size * Ints::kValueBytes;
  for (std::int32_t tile = args.tile_begin; tile < args.tile_end; tile += 2) {
    const std::int32_t n_tiles = args.tile_end - tile < 2 ? 1 : 2;
    for (std::int32_t group = 0; group < n_groups; group += run) {
      const AffineStrip strip{
          .w = w.tile(tile) + group * static_cast<std::ptrdiff_t>(w.group_bytes()),
          .w_tile = static_cast<std::ptrdiff_t>(w.tile_bytes()),
          .w_group = static_cast<std::ptrdiff_t>(w.group_bytes()),
          .prefetch = kAffinePrefetchBytes,
          .type = w.format.type,
          .group_size = w.format.group_size,
          .n_groups = n_groups - group < run ? n_groups - group : run,
          .x = args.xq + group * x_group,
          .x_token = args.xq_stride,
          .y = args.scratch,
          .y_tile = std::ptrdiff_t{args.m} * 16,
          .y_token = 16,
          .resume = group > 0,
      };
      if constexpr (Bits == 4) {
        if (!few_tokens) {
          AffineStrip wide;
          widen_nibbles<Ints>(strip, n_tiles,
                              reinterpret_cast<std::byte*>(args.scratch + n_tiles * strip.y_tile),
                              wide);
          accumulate_affine_all<V, Ints, 8>(wide, n_tiles, args.m);
          continue;
        }
      }
      accumulate_affine_all<V, Ints, Bits>(strip, n_tiles, args.m);
    }
    apply_epilogue<V>(args, tile, tile + n_tiles);
  }
}

}  // namespace
}  // namespace openelm::kernels
