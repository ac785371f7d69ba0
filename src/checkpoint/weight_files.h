#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/safetensors.h"

namespace openelm {

/// A tensor and the file that holds it.
struct StoredTensor {
  SafetensorsEntry entry;
  const MappedFile* file = nullptr;
};

/// "<file>: tensor "<name>"", with which messages about a tensor begin.
std::string place_of(const StoredTensor& tensor);

/// Throws Error "<place> <what>".
[[noreturn]] void fail_at(const StoredTensor& tensor, const std::string& what);

/// All the tensors of a model folder, by the names that its files use.
struct WeightFiles {
  std::filesystem::path origin;  ///< the index or the one file that was opened
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<StoredTensor> tensors;
  std::vector<std::string> unlisted;  ///< tensors that lie in a shard but not in the index
};

/// Opens model.safetensors.index.json and the shards it names, else model.safetensors, else MLX's
/// weights.safetensors. Other files in the folder are never opened. Throws Error.
WeightFiles open_weight_files(const std::filesystem::path& folder);

}  // namespace openelm
