#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx512/vec.h"
#include "kernels/blocking.h"
#include "kernels/generic/epilogue.h"
#include "kernels/generic/strip.h"
#include "kernels/kernels.h"

/// Products of bf16 weights with activations rounded to bf16. A tile's lane holds a row's pair of
/// weights, which is what the dot-product instruction takes; every output is one chain of it in
/// ascending k, so that results depend on neither the number of tokens nor that of threads.
namespace openelm::kernels {
namespace {

/// Tokens that two tiles leave registers for, and that are few enough for four tiles and for
/// weights that stream from memory.
constexpr int kBf16MostTokens = 12;
constexpr int kBf16FewTokens = 3;

/// `Tiles` x `Tokens` outputs over a run of pairs.
struct Bf16Strip {
  const std::byte* w;      ///< first tile
  std::ptrdiff_t w_tile;   ///< bytes from tile to tile
  const std::byte* x;      ///< first token
  std::ptrdiff_t x_token;  ///< bytes from token to token
  float* y;                ///< first output
  std::ptrdiff_t y_tile;   ///< floats from tile to tile
  std::ptrdiff_t y_token;  ///< floats from token to token
  std::int32_t n_pairs;
  bool resume;  ///< go on from the y found, instead of from 0
};

[[gnu::always_inline]] inline __m512bh broadcast_pair(const std::byte* p) {
  std::int32_t pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}

template <int Tiles, int Tokens>
[[gnu::noinline]] void accumulate_bf16(const Bf16Strip& strip) {
  Avx512Vec sum[Tiles][Tokens];
  const std::byte* w[Tiles];
  const std::byte* x[Tokens];
  point_at(w, strip.w, strip.w_tile);
  point_at(x, strip.x, strip.x_token);
  load_sums(strip, sum);
  for (std::ptrdiff_t pair = 0; pair < strip.n_pairs; ++pair) {
    __m512bh row[Tiles];
#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
      const std::byte* const at = w[tile] + pair * 64;
      if constexpr (Tokens <= kBf16FewTokens) __builtin_prefetch(at + kMatmulPrefetchBytes / Tiles);
      row[tile] = (__m512bh)_mm512_loadu_si512(at);
    }
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      const __m512bh value = broadcast_pair(x[token] + pair * 4);
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) {
        __m512& lanes = sum[tile][token].lanes;
        lanes = _mm512_dpbf16_ps(lanes, row[tile], value);
      }
    }
  }
  store_sums(strip, sum);
}

template <int Tiles, int MostTokens>
void run_bf16_strip(const Bf16Strip& strip, int tokens) {
  with_count<MostTokens>(
      tokens, [&](auto count) { accumulate_bf16<Tiles, decltype(count)::value>(strip); });
}

/// Tiles in fours for few tokens, to hide the chains' latency; in twos for more.
void accumulate_bf16_all(const Bf16Strip& strip, std::int32_t n_tiles, std::int32_t n_tokens) {
  for_each_part(n_tokens, kBf16MostTokens, [&](std::int32_t token, int tokens) {
    for (std::int32_t tile = 0; tile < n_tiles;) {
      const Bf16Strip piece = part_of(strip, tile, token);
      if (n_tiles - tile >= 4 && tokens <= kBf16FewTokens) {
        run_bf16_strip<4, kBf16FewTokens>(piece, tokens);
        tile += 4;
      } else if (n_tiles - tile >= 2) {
        run_bf16_strip<2, kBf16MostTokens>(piece, tokens);
        tile += 2;
      } else {
        run_bf16_strip<1, kBf16MostTokens>(piece, tokens);
        tile += 1;
      }
    }
  });
}

/// Walks memory as the product of float32 activations does (see generic/matmul.h).
void bf16_matmul(const MatmulArgs& args) {
  const std::int32_t k_padded = args.w->k_padded;
  const auto tile_bytes = static_cast<std::ptrdiff_t>(args.w->tile_bytes());
  const std::int32_t k_block = args.m <= kBf16MostTokens ? k_padded : 2 * kMatmulBlockK;
  for (std::int32_t begin = args.tile_begin; begin < args.tile_end; begin += kMatmulGroupTiles) {
    const std::int32_t left = args.tile_end - begin;
    const std::int32_t n_tiles = left < kMatmulGroupTiles ? left : kMatmulGroupTiles;
    for (std::int32_t k = 0; k < k_padded; k += k_block) {
      const std::int32_t length = k_padded - k < k_block ? k_padded - k : k_block;
      accumulate_bf16_all({.w = args.w->tiles + begin * tile_bytes + k * 32,
                           .w_tile = tile_bytes,
                           .x = args.xq + k * 2,
                           .x_token = args.xq_stride,
                           .y = args.scratch,
                           .y_tile = std::ptrdiff_t{args.m} * 16,
                           .y_token = 16,
                           .n_pairs = length / 2,
                           .resume = k > 0},
                          n_tiles, args.m);
    }
    apply_epilogue<Avx512Vec>(args, begin, begin + n_tiles);
  }
}

}  // namespace
}  // namespace openelm::kernels
