#pragma once

#include <cstdint>

/// Block sizes of the matrix product. They shape the walk over memory, not the result.
namespace openelm::kernels {

/// Tiles that pass over the tokens together; even, since swiglu takes tiles in pairs.
constexpr std::int32_t kMatmulGroupTiles = 8;

/// Length of a block of the sum, even; a bf16 tile's part of it is 16 KiB.
constexpr std::int32_t kMatmulBlockK = 512;

/// Bytes of weights that are prefetched ahead, over all the streams that are read at once.
constexpr std::int32_t kMatmulPrefetchBytes = 4096;

/// Affine weights: tiles and length of the sum, a multiple of every group size, of a block that
/// stays in the first cache; its 8-bit quants are 32 KiB.
constexpr std::int32_t kAffineBlockTiles = 2;
constexpr std::int32_t kAffineBlockK = 1024;

/// Affine weights: up to so many tokens take the weights as they stream from memory; more take them
/// in blocks, and 4 bits widened.
constexpr std::int32_t kAffineFewTokens = 8;

/// Room for such a block widened: bytes, and scales and biases of groups of 32.
constexpr std::int32_t kAffineWidenedBytes =
    kAffineBlockTiles * (kAffineBlockK * 16 + kAffineBlockK / 32 * 128);

/// Affine weights: strips of up to so many tokens are done before memory has the next weights, and
/// fetch so many bytes ahead; the others fetch the block after theirs, into the second cache.
constexpr int kAffineStreamTokens = 3;
constexpr std::int32_t kAffinePrefetchBytes = 2048;
constexpr int kAffineSecondCache = 2;

}  // namespace openelm::kernels
