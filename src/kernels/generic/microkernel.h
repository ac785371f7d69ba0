#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/generic/strip.h"

/// The one inner loop of matrix products and attention. See sources.h for the unnamed namespace.
namespace openelm::kernels {
namespace {

/// A strip of `Tiles` x `Tokens` outputs of 16 lanes each:
/// y[tile][token] (+)= Σ_k w[tile][k] * x[token][k], one fma chain in ascending k.
struct Strip {
  const std::byte* w;       ///< first tile, read through a source
  std::ptrdiff_t w_tile;    ///< bytes from tile to tile
  std::ptrdiff_t prefetch;  ///< bytes prefetched ahead, over all tiles; 0 for none
  const float* x;           ///< first token
  std::ptrdiff_t x_token;   ///< floats from token to token
  float* y;                 ///< first output
  std::ptrdiff_t y_tile;    ///< floats from tile to tile
  std::ptrdiff_t y_token;   ///< floats from token to token
  std::int32_t k;           ///< length of the sum
  bool resume;              ///< go on from the y found, instead of from 0
};

/// Stops the compiler from moving loads past this point: those of the next step, done early, would
/// take registers that the sums need.
[[gnu::always_inline]] inline void keep_loads_here() { __asm__ volatile("" ::: "memory"); }

/// Keeps all Tiles * Tokens sums in registers. Tiles hide the latency of the fma chains when tokens
/// are few; tokens share the widened weights when they are many.
template <class V, int Tiles, int Tokens, class Source>
void accumulate(const Source source, const Strip& strip) {
  V sum[Tiles][Tokens];
  const std::byte* w[Tiles];
  const float* x[Tokens];
  point_at(w, strip.w, strip.w_tile);
  point_at(x, strip.x, strip.x_token);
  load_sums(strip, sum);

  const auto step = [&](const auto& load_row, std::ptrdiff_t k) __attribute__((always_inline)) {
    if constexpr (Tiles <= Tokens) {
      V row[Tiles];
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) row[tile] = load_row(w[tile]);
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
        const V value = V::splat(x[token][k]);
#pragma GCC unroll 16
        for (int tile = 0; tile < Tiles; ++tile) {
          sum[tile][token] = V::fma(row[tile], value, sum[tile][token]);
        }
      }
    } else {
      V value[Tokens];
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) value[token] = V::splat(x[token][k]);
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) {
        const V row = load_row(w[tile]);
#pragma GCC unroll 16
        for (int token = 0; token < Tokens; ++token) {
          sum[tile][token] = V::fma(row, value[token], sum[tile][token]);
        }
      }
    }
  };
  const auto even = [&](const std::byte* at) __attribute__((always_inline)) {
    return source.even(at);
  };
  const auto odd = [&](const std::byte* at) __attribute__((always_inline)) {
    return source.odd(at);
  };

  const std::ptrdiff_t pair_stride = source.pair_stride();
  const std::ptrdiff_t k_pairs = strip.k / 2 * 2;
  std::ptrdiff_t prefetch = strip.prefetch;
  std::ptrdiff_t stop = k_pairs - prefetch / pair_stride * 2;
  std::ptrdiff_t k = 0;
  for (int part = 0; part < 2; ++part) {
    for (; k < stop; k += 2) {
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) source.prefetch(w[tile] + prefetch);
      step(even, k);
      keep_loads_here();
      step(odd, k + 1);
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) w[tile] += pair_stride;
    }
    // The last part prefetches where the next tiles' strip begins.
    prefetch += Tiles * strip.w_tile - k_pairs / 2 * pair_stride;
    stop = k_pairs;
  }
  if (k < strip.k) step(even, k);
  store_sums(strip, sum);
}

template <class Source>
using StripKernel = void (*)(Source source, const Strip& strip);

/// `accumulate` for a number of tokens known only at run time, 1 .. Tokens.
template <class V, class Source, int Tiles, int Tokens>
StripKernel<Source> strip_kernel(int tokens) {
  return with_count<Tokens>(tokens, [](auto count) -> StripKernel<Source> {
    return accumulate<V, Tiles, decltype(count)::value, Source>;
  });
}

/// A strip kernel and the number of tiles it takes.
template <class Source>
struct StripChoice {
  StripKernel<Source> kernel;
  int tiles;
};

/// The kernel with the most tiles, 2^LogTiles at most, that takes so many tokens and of whose tiles
/// `tiles_left` remain.
template <class V, class Source, int LogTiles = sizeof(V::kMaxTokens) / sizeof(int) - 1>
StripChoice<Source> choose_strip(int tokens, std::int32_t tiles_left) {
  constexpr int kTiles = 1 << LogTiles;
  if constexpr (LogTiles > 0) {
    if (tokens > V::kMaxTokens[LogTiles] || tiles_left < kTiles) {
      return choose_strip<V, Source, LogTiles - 1>(tokens, tiles_left);
    }
  }
  return {strip_kernel<V, Source, kTiles, V::kMaxTokens[LogTiles]>(tokens), kTiles};
}

/// Runs `strip`, which describes n_tiles x n_tokens outputs, in pieces that fit the registers: all
/// tiles for some tokens, then for the next ones.
template <class V, class Source>
void accumulate_all(const Source source, const Strip& strip, std::int32_t n_tiles,
                    std::int32_t n_tokens) {
  for_each_part(n_tokens, V::kMaxTokens[0], [&](std::int32_t token, int tokens) {
    for (std::int32_t tile = 0; tile < n_tiles;) {
      const auto [kernel, tiles] = choose_strip<V, Source>(tokens, n_tiles - tile);
      Strip piece = part_of(strip, tile, token);
      piece.prefetch /= tiles;
      kernel(source, piece);
      tile += tiles;
    }
  });
}

}  // namespace
}  // namespace openelm::kernels
