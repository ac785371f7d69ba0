#pragma once

#include <cstdint>

namespace openelm {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number
/// generators", 2014): a bijection in which every input bit reaches every output bit.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// Random bits number `n` of the stream `seed`: output n of a SplitMix64 that starts at
/// mix64(seed). There is no state, so a draw depends on (seed, n) and on nothing that happened
/// before. Mixing the seed spreads the streams of neighbouring seeds over the generator's one
/// cycle, where they would otherwise be shifts of each other by few steps.
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t n) noexcept {
  constexpr std::uint64_t golden_gamma = 0x9E3779B97F4A7C15U;
  return mix64(mix64(seed) + (n + 1) * golden_gamma);
}

/// A uniform number in [0, 1): the upper 53 bits, all that a double's mantissa holds.
constexpr double uniform(std::uint64_t seed, std::uint64_t n) noexcept {
  return static_cast<double>(random_bits(seed, n) >> 11) * 0x1p-53;
}

}  // namespace openelm
