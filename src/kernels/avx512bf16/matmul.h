#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/avx512/vec.h"
#include "kernels/blocking.h"
#include "kernels/generic/epilogue.h"
#include "kernels/kernels.h"

/// Products of bf16 weights with activations rounded to bf16. A tile's lane holds a row's pair of
/// weights, which is what the dot-product instruction takes; every output is one chain of it in
/// ascending k, so that results depend on neither the number of tokens nor that of threads.
namespace openelm::kernels {
namespace {

/// `Tiles` x `Tokens` outputs over a run of pairs.
struct Bf16Strip {
  const std::byte* w;      ///< first tile
  std::ptrdiff_t w_tile;   ///< bytes from tile to tile
  const std::byte* x;      ///< first token
  std::ptrdiff_t x_token;  ///< bytes from token to token
  float* y;                ///< first output
  std::ptrdiff_t y_tile;   ///< floats from tile to tile; from token to token it is 16
  std::int32_t n_pairs;
  bool resume;  ///< go on from the y found, instead of from 0
};

[[gnu::always_inline]] inline __m512bh broadcast_pair(const std::byte* p) {
  std::int32_t pair;
  __builtin_memcpy(&pair, p, sizeof pair);
  return (__m512bh)_mm512_set1_epi32(pair);
}

template <int Tiles, int Tokens>
void accumulate_bf16(const Bf16Strip& strip) {
  __m512 sum[Tiles][Tokens];
  const std::byte* w[Tiles];
  const std::byte* x[Tokens];
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) w[tile] = strip.w + tile * strip.w_tile;
#pragma GCC unroll 16
  for (int token = 0; token < Tokens; ++token) x[token] = strip.x + token * strip.x_token;
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      sum[tile][token] = strip.resume ? _mm512_loadu_ps(strip.y + tile * strip.y_tile + token * 16)
                                      : _mm512_setzero_ps();
    }
  }
  for (std::ptrdiff_t pair = 0; pair < strip.n_pairs; ++pair) {
    __m512bh row[Tiles];
#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
      const std::byte* const at = w[tile] + pair * 64;
      if constexpr (Tokens <= 3) __builtin_prefetch(at + kMatmulPrefetchBytes / Tiles);
      row[tile] = (__m512bh)_mm512_loadu_si512(at);
    }
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      const __m512bh value = broadcast_pair(x[token] + pair * 4);
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) {
        sum[tile][token] = _mm512_dpbf16_ps(sum[tile][token], row[tile], value);
      }
    }
  }
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      _mm512_storeu_ps(strip.y + tile * strip.y_tile + token * 16, sum[tile][token]);
    }
  }
}

/// Calls the strip for so many tokens, 1 .. Tokens.
template <int Tiles, int Tokens>
void run_bf16_strip(const Bf16Strip& strip, int tokens) {
  if constexpr (Tokens > 1) {
    if (tokens < Tokens) return run_bf16_strip<Tiles, Tokens - 1>(strip, tokens);
  }
  accumulate_bf16<Tiles, Tokens>(strip);
}

/// Tiles in fours for up to three tokens, to hide the chains' latency; in twos for more.
void accumulate_bf16_all(const Bf16Strip& strip, std::int32_t n_tiles, std::int32_t n_tokens) {
  constexpr int kMostTokens = 12;
  constexpr int kFewTokens = 3;
  const std::int32_t n_blocks = (n_tokens + kMostTokens - 1) / kMostTokens;
  std::int32_t token = 0;
  for (std::int32_t block = 0; block < n_blocks; ++block) {
    const int tokens = (n_tokens - token) / (n_blocks - block);
    for (std::int32_t tile = 0; tile < n_tiles;) {
      Bf16Strip piece = strip;
      piece.w += tile * strip.w_tile;
      piece.x += token * strip.x_token;
      piece.y += tile * strip.y_tile + token * 16;
      if (n_tiles - tile >= 4 && tokens <= kFewTokens) {
        run_bf16_strip<4, kFewTokens>(piece, tokens);
        tile += 4;
      } else if (n_tiles - tile >= 2) {
        run_bf16_strip<2, kMostTokens>(piece, tokens);
        tile += 2;
      } else {
        run_bf16_strip<1, kMostTokens>(piece, tokens);
        tile += 1;
      }
    }
    token += tokens;
  }
}

/// Walks memory as the product of float32 activations does (see generic/matmul.h).
void bf16_matmul(const MatmulArgs& args) {
  const std::int32_t k_padded = args.w->k_padded;
  const auto tile_bytes = static_cast<std::ptrdiff_t>(args.w->tile_bytes());
  const std::int32_t k_block = args.m <= 12 ? k_padded : 2 * kMatmulBlockK;
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
                           .n_pairs = length / 2,
                           .resume = k > 0},
                          n_tiles, args.m);
    }
    apply_epilogue<Avx512Vec>(args, begin, begin + n_tiles);
  }
}

}  // namespace
}  // namespace openelm::kernels
