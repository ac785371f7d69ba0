#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <openelm/config.h>
#include <openelm/quantization.h>

#include "parallel/thread_pool.h"

namespace openelm {

struct QuantizeFolderOptions {
  QuantizeOptions quantize;
  bool replace = false;  ///< a model folder that is at the destination
  /// Called from the calling thread: weights done, weights in all.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};
  /// Set by others to give up.
  const std::atomic<bool>* cancel = nullptr;
};

/// What a group of matrices came to.
struct QuantizedPart {
  std::int64_t weights = 0;
  std::uint64_t bytes = 0;

  double bits_per_weight() const noexcept {
    return weights > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0.0;
  }
};

struct QuantizedFolder {
  std::uint64_t bytes_in = 0;         ///< of the tensors read
  std::uint64_t bytes_out = 0;        ///< of model.safetensors
  QuantizedPart body;                 ///< the layers' matrices
  QuantizedPart head;                 ///< embedding and head
  std::size_t quantized = 0;          ///< matrices
  std::vector<std::string> kept;      ///< tensors that stay as they are, norms among them
  std::optional<std::string> note;    ///< which matrices are among those, in a line
  std::vector<std::string> warnings;  ///< of the source
};

/// Writes the model of folder `in` to folder `out` with its matrices in MLX's affine groups, as
/// mlx-lm writes and reads them: config.json with "quantization", model.safetensors, and the
/// tokenizer's files. Read and written in small parts by all threads of `pool`. `out` appears when
/// all is done and on the disk; on failure, or when cancelled (the result is then empty), nothing
/// is left behind. Throws Error, and UsageError when `out` is or holds `in`.
std::optional<QuantizedFolder> quantize_folder(const std::filesystem::path& in,
                                               const std::filesystem::path& out,
                                               const QuantizeFolderOptions& options,
                                               ThreadPool& pool);

}  // namespace openelm
