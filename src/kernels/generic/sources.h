#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernels.h"

/// Where a microkernel's vectors come from. A source yields the 16 lanes of two consecutive steps
/// of the sum (`even`, `odd`) that start at `at`, widened to float; `pair_stride` is the distance
/// in bytes to the next two.
///
/// Headers of this folder are compiled once for each instruction set, with its flags: the unnamed
/// namespace keeps the linker from merging copies that a lesser CPU could not run.
namespace openelm::kernels {
namespace {

/// One row of 16 stored numbers.
template <class V, auto Type>
[[gnu::always_inline]] inline V load_row(const std::byte* at) {
  using Kind = decltype(Type);
  if constexpr (Type == Kind::f32) return V::load(reinterpret_cast<const float*>(at));
  if constexpr (Type == Kind::f16) return V::load_f16(at);
  if constexpr (Type == Kind::bf16) return V::load_bf16(at);
  if constexpr (size_of(Type) == 1) return V::load_i8(at);
}

template <auto Type>
constexpr std::ptrdiff_t kRowBytes = 16 * size_of(Type);

/// Rows of 16 numbers one after the other: a tile of f32 or f16 weights, or of keys.
template <class V, auto Type>
struct Rows {
  [[gnu::always_inline]] V even(const std::byte* at) const { return load_row<V, Type>(at); }
  [[gnu::always_inline]] V odd(const std::byte* at) const {
    return load_row<V, Type>(at + kRowBytes<Type>);
  }
  [[gnu::always_inline]] std::ptrdiff_t pair_stride() const { return 2 * kRowBytes<Type>; }
  [[gnu::always_inline]] void prefetch(const std::byte* at) const {
    __builtin_prefetch(at);
    if constexpr (2 * kRowBytes < Type >> 64) __builtin_prefetch(at + 64);
  }
};

/// A tile of bf16 weights: 16 lanes of 32 bits, two steps in each.
template <class V>
struct PairedBf16 {
  [[gnu::always_inline]] V even(const std::byte* at) const { return V::load_bf16_even(at); }
  [[gnu::always_inline]] V odd(const std::byte* at) const { return V::load_bf16_odd(at); }
  [[gnu::always_inline]] std::ptrdiff_t pair_stride() const { return 64; }
  [[gnu::always_inline]] void prefetch(const std::byte* at) const { __builtin_prefetch(at); }
};

/// Rows of 16 numbers `stride` bytes apart: 16 columns of a row-major matrix, such as the values.
template <class V, auto Type>
struct StridedRows {
  std::ptrdiff_t stride;
  [[gnu::always_inline]] V even(const std::byte* at) const { return load_row<V, Type>(at); }
  [[gnu::always_inline]] V odd(const std::byte* at) const { return load_row<V, Type>(at + stride); }
  [[gnu::always_inline]] std::ptrdiff_t pair_stride() const { return 2 * stride; }
  [[gnu::always_inline]] void prefetch(const std::byte*) const {}
};

template <class V, WeightType Type>
struct TileSource : Rows<V, Type> {};
template <class V>
struct TileSource<V, WeightType::bf16> : PairedBf16<V> {};

}  // namespace
}  // namespace openelm::kernels
