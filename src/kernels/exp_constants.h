#pragma once

/// Constants of the one exp that every kernel variant computes; kernels.h states the algorithm.
namespace openelm::kernels {

/// exp of kExpMin rounds to 0 and exp of kExpMax to infinity, so clamping to them changes nothing.
constexpr float kExpMin = -104.0F;
constexpr float kExpMax = 89.0F;

constexpr float kLog2e = 0x1.715476p+0F;

/// ln 2 in two parts: the upper one has 9 zero bits at its end, so n * kLn2Hi is exact.
constexpr float kLn2Hi = 0x1.62e4p-1F;
constexpr float kLn2Lo = 0x1.7f7d1cp-20F;

/// exp(r) = 1 + r + C2 r² + ... + C6 r⁶ on |r| <= ln 2 / 2: a minimax fit of the relative error
/// (3.2e-9), refitted after each coefficient was rounded to float.
constexpr float kExpC2 = 0x1.fffffcp-2F;
constexpr float kExpC3 = 0x1.555492p-3F;
constexpr float kExpC4 = 0x1.5558bp-5F;
constexpr float kExpC5 = 0x1.12398ep-7F;
constexpr float kExpC6 = 0x1.6a4d62p-10F;

}  // namespace openelm::kernels
