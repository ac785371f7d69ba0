#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/blocking.h"
#include "kernels/generic/strip.h"
#include "kernels/kernels.h"

/// The inner loop of products with affine weights. `Ints` is an instruction set's whole-number
/// half: 16 rows at a time, sums of 32 bits.
namespace openelm::kernels {
namespace {

/// A strip of `Tiles` x `Tokens` outputs of 16 lanes each over a run of groups.
struct AffineStrip {
  const std::byte* w;      ///< first tile, at the run's first group
  std::ptrdiff_t w_tile;   ///< bytes from tile to tile
  std::ptrdiff_t w_group;  ///< bytes from group to group
  WeightType type;         ///< of scales and biases
  std::int32_t group_size;
  std::int32_t n_groups;
  const std::byte* x;      ///< first token, at the run's first group
  std::ptrdiff_t x_token;  ///< bytes from token to token
  float* y;                ///< first output
  std::ptrdiff_t y_tile;   ///< floats from tile to tile
  std::ptrdiff_t y_token;  ///< floats from token to token
  bool resume;             ///< go on from the y found, instead of from 0
  /// Read next, a tile like `w`: fetched in passing, so that memory works while this is multiplied.
  const std::byte* ahead;
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
/// several chains to hide the latency of the products. Not inlined: in one function with the others
/// the compiler spills.
template <class V, class Ints, int Bits, int Block, int Tiles, int Tokens>
[[gnu::noinline]] void accumulate_affine(const AffineStrip& strip) {
  using Sum = typename Ints::Sum;
  using Weights = typename Ints::Weights;
  constexpr int kChains = Tiles * Tokens >= 4 ? 1 : Tiles * Tokens >= 2 ? 2 : 4;
  constexpr int kQuads = Block / 4;
  constexpr std::ptrdiff_t kQuadBytes = 4 * Ints::kValueBytes;
  const auto number = static_cast<std::ptrdiff_t>(size_of(strip.type));

  const std::byte* w[Tiles];
  const std::byte* x[Tokens];
  V total[Tiles][Tokens];
  point_at(w, strip.w, strip.w_tile);
  point_at(x, strip.x, strip.x_token);
  load_sums(strip, total);
  const std::byte* ahead = strip.ahead;

  for (std::int32_t group = 0; group < strip.n_groups; ++group) {
    // Scales, biases and totals of the group are far from the loop that needs the registers.
    const std::byte* header[Tiles];
    float group_total[Tokens];
    V dot[Tiles][Tokens];
#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
      header[tile] = w[tile];
      w[tile] += 2 * 16 * number;
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) dot[tile][token] = V::splat(0.0F);
    }
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      group_total[token] = reinterpret_cast<const QuantisedBlock*>(x[token])->total;
    }

    for (std::int32_t block = 0; block < strip.group_size; block += Block) {
      // Keeps the optimiser from unrolling what is long enough.
      __asm__("" : "+r"(block));
      Sum sum[Tiles][Tokens][kChains];
#pragma GCC unroll 16
      for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
        for (int token = 0; token < Tokens; ++token) {
#pragma GCC unroll 4
          for (int chain = 0; chain < kChains; ++chain) sum[tile][token][chain] = Ints::zero();
        }
      }
      const auto multiply = [&](const Weights(&quad)[Tiles], int i) __attribute__((always_inline)) {
#pragma GCC unroll 16
        for (int token = 0; token < Tokens; ++token) {
          const auto four = Ints::broadcast(x[token] + sizeof(QuantisedBlock) + i * kQuadBytes);
#pragma GCC unroll 16
          for (int tile = 0; tile < Tiles; ++tile) {
            Sum& chain = sum[tile][token][i % kChains];
            chain = Ints::dot(chain, quad[tile], four);
          }
        }
      };
#pragma GCC unroll 8
      for (int i = 0; i < kQuads; i += Bits == 8 ? 1 : 2) {
        Weights first[Tiles];
        Weights second[Tiles];
        if constexpr (Tokens > kAffineStreamTokens) {
          __builtin_prefetch(ahead, 0, kAffineSecondCache);
          ahead += 64;
        }
#pragma GCC unroll 16
        for (int tile = 0; tile < Tiles; ++tile) {
          if constexpr (Tokens <= kAffineStreamTokens) {
            __builtin_prefetch(w[tile] + kAffinePrefetchBytes);
          }
          if constexpr (Bits == 8) {
            first[tile] = Ints::load_bytes(w[tile]);
          } else {
            Ints::load_nibbles(w[tile], first[tile], second[tile]);
          }
          w[tile] += 64;
        }
        multiply(first, i);
        if constexpr (Bits == 4) multiply(second, i + 1);
      }
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
        const auto* const of_x = reinterpret_cast<const QuantisedBlock*>(x[token]);
        const V scale = V::splat(of_x->scale);
#pragma GCC unroll 16
        for (int tile = 0; tile < Tiles; ++tile) {
          Sum whole = sum[tile][token][0];
#pragma GCC unroll 4
          for (int chain = 1; chain < kChains; ++chain) {
            whole = Ints::add(whole, sum[tile][token][chain]);
          }
          dot[tile][token] =
              V::fma(Ints::template to_float<Bits>(whole, of_x->sum), scale, dot[tile][token]);
        }
        x[token] += sizeof(QuantisedBlock) + kQuads * kQuadBytes;
      }
    }

#pragma GCC unroll 16
    for (int tile = 0; tile < Tiles; ++tile) {
      const V scale = load_numbers<V>(strip.type, header[tile]);
      const V bias = load_numbers<V>(strip.type, header[tile] + 16 * number);
#pragma GCC unroll 16
      for (int token = 0; token < Tokens; ++token) {
        V& out = total[tile][token];
        out = V::fma(dot[tile][token], scale, out);
        out = V::fma(bias, V::splat(group_total[token]), out);
      }
    }
  }

  store_sums(strip, total);
}

}  // namespace
}  // namespace openelm::kernels
