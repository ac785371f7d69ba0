#pragma once

#include <cstdint>

/// Block sizes of the matrix product. They shape the walk over memory, not the result.
namespace openelm::kernels {

/// Tiles that pass over the tokens together; even, since swiglu takes tiles in pairs.
constexpr std::int32_t kMatmulGroupTiles = 8;

/// Length of a block of the sum, even; a bf16 tile's part of it is 16 KiB.
constexpr std::int32_t kMatmulBlockK = 512;

/// Bytes of weights that are prefetched ahead, over all the streams that are read at once.
constexpr std::int32_t kMatmulPrefetchBytes = 2048;

/// Affine weights: length of a block of the sum, a multiple of every group size; the 8-bit quants
/// of two tiles for it are 32 KiB.
constexpr std::int32_t kAffineBlockK = 1024;

/// Affine weights: up to so many tokens take the weights as they stream from memory; more take them
/// in blocks, and 4 bits widened.
constexpr std::int32_t kAffineFewTokens = 8;

/// Room for two widened tiles of such a block: bytes, and scales and biases of groups of 32.
constexpr std::int32_t kAffineWidenedBytes = 2 * (kAffineBlockK * 16 + kAffineBlockK / 32 * 128);

/// Affine weights: bytes prefetched ahead of each of the two streams.
constexpr std::int32_t kAffinePrefetchBytes = 1024;

}  // namespace openelm::kernels
