#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <openelm/config.h>

namespace openelm {

/// Looks at the rows of logits while the head goes on to the next ones, so that only kRows of them
/// are kept at a time. Called on all workers at once, each row once; may change the row.
struct LogitScan {
  static constexpr std::int32_t kRows = 128;
  void (*call)(void* context, std::size_t i, float* logits) noexcept = nullptr;
  void* context = nullptr;
};

/// The tokens of one forward pass: prompt chunks, single decode steps, or both, of any number of
/// sequences. Rows of one sequence stand together, in ascending position, and the sequence's cache
/// holds all earlier positions.
struct Batch {
  std::span<const TokenId> tokens;            // [M]
  std::span<const std::int32_t> positions;    // [M]
  std::span<const std::int32_t> sequences;    // [M], the cache's sequence numbers
  std::span<const std::int32_t> wanted;       // rows whose logits are computed, ascending
  float* logits = nullptr;                    // [wanted.size()], rows logits_stride apart; with a
                                              // scan [min(wanted.size(), LogitScan::kRows)]
  std::int64_t logits_stride = 0;             // at least vocab_size rounded up to 16
  const std::atomic<bool>* cancel = nullptr;  // looked at once a layer; may be null
  LogitScan scan = {};                        // called with i, the index in `wanted`

  std::int32_t rows() const noexcept { return static_cast<std::int32_t>(tokens.size()); }
};

}  // namespace openelm
