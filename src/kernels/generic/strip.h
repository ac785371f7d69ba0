#pragma once

#include <cstddef>
#include <cstdint>

/// What the inner loops of products share. Each computes a strip of Tiles x Tokens outputs of 16
/// lanes in registers; a strip is described by a struct with, at least,
///   w, w_tile              first tile, and bytes from tile to tile
///   x, x_token             first token, and the distance from token to token
///   y, y_tile, y_token     first output (float*), and floats from tile to tile and token to token
///   resume                 go on from the y found, instead of from 0
/// See sources.h for the unnamed namespace.
namespace openelm::kernels {
namespace {

/// at[i] = the i-th of rows that are `stride` apart.
template <class T, int Count>
[[gnu::always_inline]] inline void point_at(const T* (&at)[Count], const T* first,
                                            std::ptrdiff_t stride) {
#pragma GCC unroll 16
  for (int i = 0; i < Count; ++i) at[i] = first + i * stride;
}

template <class V, class Strip, int Tiles, int Tokens>
[[gnu::always_inline]] inline void load_sums(const Strip& strip, V (&sum)[Tiles][Tokens]) {
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      sum[tile][token] = strip.resume
                             ? V::load(strip.y + tile * strip.y_tile + token * strip.y_token)
                             : V::splat(0.0F);
    }
  }
}

template <class V, class Strip, int Tiles, int Tokens>
[[gnu::always_inline]] inline void store_sums(const Strip& strip, const V (&sum)[Tiles][Tokens]) {
#pragma GCC unroll 16
  for (int tile = 0; tile < Tiles; ++tile) {
#pragma GCC unroll 16
    for (int token = 0; token < Tokens; ++token) {
      sum[tile][token].store(strip.y + tile * strip.y_tile + token * strip.y_token);
    }
  }
}

/// The strip from this tile and token on.
template <class Strip>
Strip part_of(const Strip& strip, std::int32_t tile, std::int32_t token) {
  Strip part = strip;
  part.w += tile * strip.w_tile;
  part.x += token * strip.x_token;
  part.y += tile * strip.y_tile + token * strip.y_token;
  return part;
}

/// Calls use(first token, number of tokens) for parts of at most `most`. Tokens are split evenly
/// (7 = 4 + 3), since a part of one token costs nearly as much as one of three.
template <class Use>
void for_each_part(std::int32_t n_tokens, std::int32_t most, const Use& use) {
  const std::int32_t n_parts = (n_tokens + most - 1) / most;
  std::int32_t token = 0;
  for (std::int32_t part = 0; part < n_parts; ++part) {
    const int tokens = (n_tokens - token) / (n_parts - part);
    use(token, tokens);
    token += tokens;
  }
}

/// A number known to the compiler.
template <int Value>
struct Count {
  static constexpr int value = Value;
};

/// use(Count<n>) for a number known only at run time, 1 .. Most.
template <int Most, class Use>
auto with_count(int n, const Use& use) {
  if constexpr (Most > 1) {
    if (n < Most) return with_count<Most - 1>(n, use);
  }
  return use(Count<Most>{});
}

}  // namespace
}  // namespace openelm::kernels
