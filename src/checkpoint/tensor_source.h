#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/config.h>

namespace openelm {

class MappedFile;

/// A tensor as it lies in a mapped file. The bytes may be unaligned: read them with memcpy.
struct TensorView {
  std::string name;  ///< as the file spells it
  WeightFormat format;
  std::vector<std::int64_t> shape;  ///< in weights, whatever the format packs them into
  std::span<const std::byte> data;
  std::span<const std::byte> scales = {};  ///< affine: [rows, columns / group_size] of format.type
  std::span<const std::byte> biases = {};
  const MappedFile* file = nullptr;

  std::size_t bytes() const noexcept { return data.size() + scales.size() + biases.size(); }
};

/// How messages name a tensor: the file and the name in it.
std::string place_of(const TensorView& tensor);

/// Throws Error, naming the file and both shapes, when the tensor is shaped otherwise.
void require_shape(const TensorView& tensor, std::span<const std::int64_t> shape);

/// The weights of a checkpoint by canonical name. Canonical names are Hugging Face's without the
/// leading "transformer.": "token_embeddings.weight", "layers.3.attn.qkv_proj.weight",
/// "norm.weight", "lm_head.weight".
class TensorSource {
 public:
  /// Takes ownership of the mapped files that the views point into.
  TensorSource(std::filesystem::path origin, std::map<std::string, TensorView, std::less<>> tensors,
               std::vector<std::unique_ptr<MappedFile>> files);
  ~TensorSource();
  TensorSource(TensorSource&&) noexcept;

  bool has(std::string_view name) const;

  /// Throws Error, naming the file and both shapes, when the tensor is absent or shaped otherwise.
  const TensorView& require(std::string_view name, std::span<const std::int64_t> shape) const;

  const std::map<std::string, TensorView, std::less<>>& all() const noexcept { return tensors_; }

  /// Tells the system that the tensor's pages are not needed any more (they would count as resident
  /// memory until the file is unmapped).
  void release(const TensorView& tensor) const noexcept;

  const std::filesystem::path& origin() const noexcept { return origin_; }

 private:
  std::filesystem::path origin_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::vector<std::unique_ptr<MappedFile>> files_;
};

/// A model folder, opened and checked: configuration and tensors agree in every shape.
struct Checkpoint {
  ModelConfig config;
  TensorSource tensors;
  std::vector<std::string> warnings;  ///< things ignored that a user may want to know of
};

/// Opens a Hugging Face folder (one safetensors file or shards with an index), or an MLX folder
/// with CoreNet's names. Follows symbolic links; writes nothing. Throws Error.
Checkpoint open_checkpoint(const std::filesystem::path& folder);

}  // namespace openelm
