#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/generic/sources.h"
#include "kernels/kernels.h"

/// The inner loop of products with affine weights. `Ints` is an instruction set's whole-number
/// half: 16 rows at a time, sums of 32 bits.
namespace openelm::kernels {
namespace {

/// A strip of `Tiles` x `Tokens` outputs of 16 lanes each over a run of groups.
struct AffineStrip {
  const std::byte* w;       ///< first tile, at the run's first group
  std::ptrdiff_t w_tile;    ///< bytes from tile to tile
  std::ptrdiff_t w_group;   ///< bytes from group to group
  std::ptrdiff_t prefetch;  ///< bytes prefetched ahead, 0 for none
  WeightType type;          ///< of scales and biases
  std::int32_t group_size;
  std::int32_t n_groups;
  const std::byte* x;      ///< first token, at the run's first group
  std::ptrdiff_t x_token;  ///< bytes from token to token
  float* y;                ///< first output
  std::ptrdiff_t y_tile;   ///< floats from tile to tile
  std::ptrdiff_t y_token;  ///< floats from token to token
  bool resume;             ///< go on from the y found, instead of from 0
};

/// Scales or biases of 16 rows. The type is kept from the optimiser, which would otherwise make
/// three copies of the whole loop around.
template <class V>
[[gnu::always_inline]] inline V load_numbers(WeightType type, const std::byte* at) {
  __asm__("" : "+r"(type));
  if (type == WeightType::bf16) return V::load_bf16(at);
  if (type == WeightType::f16) return V::load_f16(at);
  return V::load(reinterpret_cast<const float*>(at));
}

/// Sums of whole numbers are exact in any order, so a strip with few outputs spreads each over
/// several chains to hide the latency of the products.
template <class V, class Ints, int Bits, int Tiles, int Tokens>
void accumulate_affine(const AffineStrip& strip) {
  using Sum = typename Ints::Sum;
  constexpr int kUnroll = 8;  // quads; a group has 8, 16 or 32
  constexpr int kChains = Tiles * Tokens >= 4 ? 1 : Tiles * Tokens >= 2 ? 2 : 4;
  const std::ptrdiff_t number = static_cast<std::ptrdiff_t>(size_of(strip.type));
  const std::ptrdiff_t header = 2 * 16 * number;
  const std::ptrdiff_t x_group =
      static_cast<std::ptrdiff_t>(sizeof(QuantisedGroup)) + strip.group_size * Ints::kValueBytes;

  const std::byte* w[Tiles];
  const std::byte* x[Tokens];
  V total[Tiles][Tokens];
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) w[tile] = strip.w + tile * strip.w_tile;
#pragma GCC unroll 16
  for (int token = 0; token < Tokens; ++token) x[token] = strip.x + token * strip.x_token;
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      total[tile][token] = strip.resume
                               ? V::load(strip.y + tile * strip.y_tile + token * strip.y_token)
                               : V::splat(0.0F);
    }
  }

  for (std::int32_t group = 0; group < strip.n_groups; ++group) {
    Sum sum[Tiles][Tokens][kChains];
#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
#pragma GCC unroll 4
        for (int chain = 0; chain < kChains; ++chain) sum[tile][token][chain] = Ints::zero();
      }
    }
    const auto multiply = [&](const typename Ints::Weights(&quad)[Tiles], std::ptrdiff_t x_at,
                              int chain) __attribute__((always_inline)) {
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
        const auto values = Ints::broadcast(x[token] + sizeof(QuantisedGroup) + x_at);
#pragma GCC unroll 16
        for (int tile = 0; tile < Tiles; ++tile) {
          sum[tile][token][chain] = Ints::dot(sum[tile][token][chain], quad[tile], values);
        }
      }
    };

    std::ptrdiff_t at = header;
    const std::ptrdiff_t x_end = strip.group_size * Ints::kValueBytes;
    constexpr std::ptrdiff_t kQuadBytes = 4 * Ints::kValueBytes;
    for (std::ptrdiff_t x_at = 0; x_at < x_end;) {
      __asm__("" : "+r"(x_at));
#pragma GCC unroll 8
      for (int i = 0; i < kUnroll; i += Bits == 8 ? 1 : 2) {
        typename Ints::Weights first[Tiles];
        typename Ints::Weights second[Tiles];
#pragma GCC unroll 16
        for (int tile = 0; tile < Tiles; ++tile) {
          if constexpr (Tokens <= 3) __builtin_prefetch(w[tile] + at + strip.prefetch);
          if constexpr (Bits == 8) {
            first[tile] = Ints::load_bytes(w[tile] + at);
          } else {
            Ints::load_nibbles(w[tile] + at, first[tile], second[tile]);
          }
        }
        multiply(first, x_at, i % kChains);
        x_at += kQuadBytes;
        if constexpr (Bits == 4) {
          multiply(second, x_at, (i + 1) % kChains);
          x_at += kQuadBytes;
        }
        at += 64;
      }
    }

#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
      const V scale = load_numbers<V>(strip.type, w[tile]);
      const V bias = load_numbers<V>(strip.type, w[tile] + 16 * number);
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
        const auto* const of_x = reinterpret_cast<const QuantisedGroup*>(x[token]);
        Sum dot = sum[tile][token][0];
#pragma GCC unroll 4
        for (int chain = 1; chain < kChains; ++chain) {
          dot = Ints::add(dot, sum[tile][token][chain]);
        }
        V& out = total[tile][token];
        out = V::fma(Ints::template to_float<Bits>(dot, of_x->sum),
                     V::mul(scale, V::splat(of_x->scale)), out);
        out = V::fma(bias, V::splat(of_x->total), out);
      }
      w[tile] += strip.w_group;
    }
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) x[token] += x_group;
  }

#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      total[tile][token].store(strip.y + tile * strip.y_tile + token * strip.y_token);
    }
  }
}

using AffineStripKernel = void (*)(const AffineStrip& strip);

/// The kernel for so many tokens, 1 .. Tokens.
template <class V, class Ints, int Bits, int Tiles, int Tokens>
AffineStripKernel affine_strip_kernel(int tokens) {
  if constexpr (Tokens > 1) {
    if (tokens < Tokens) return affine_strip_kernel<V, Ints, Bits, Tiles, Tokens - 1>(tokens);
  }
  return accumulate_affine<V, Ints, Bits, Tiles, Tokens>;
}

}  // namespace
}  // namespace openelm::kernels
