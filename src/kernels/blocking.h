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

}  // namespace openelm::kernels
