#include "checkpoint/tensor_source.h"

#include <algorithm>

#include <openelm/error.h>

#include "base/mapped_file.h"
#include "checkpoint/message_text.h"

namespace openelm {

std::string place_of(const TensorView& tensor) {
  return tensor.file->path().string() + ": tensor " + in_quotes(tensor.name);
}

void require_shape(const TensorView& tensor, std::span<const std::int64_t> shape) {
  if (std::ranges::equal(tensor.shape, shape)) return;
  throw Error(place_of(tensor) + " has shape " + shape_text(tensor.shape) +
              ", the configuration needs " + shape_text(shape));
}

TensorSource::TensorSource(std::filesystem::path origin,
                           std::map<std::string, TensorView, std::less<>> tensors,
                           std::vector<std::unique_ptr<MappedFile>> files)
    : origin_(std::move(origin)), tensors_(std::move(tensors)), files_(std::move(files)) {}

TensorSource::~TensorSource() = default;
TensorSource::TensorSource(TensorSource&&) noexcept = default;

bool TensorSource::has(std::string_view name) const { return tensors_.contains(name); }

const TensorView& TensorSource::require(std::string_view name,
                                        std::span<const std::int64_t> shape) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw Error(origin_.string() + ": tensor " + in_quotes(name) + " of shape " +
                shape_text(shape) + " is missing");
  }
  require_shape(found->second, shape);
  return found->second;
}

void TensorSource::release(const TensorView& tensor) const noexcept {
  for (const auto bytes : {tensor.data, tensor.scales, tensor.biases}) tensor.file->release(bytes);
}

}  // namespace openelm
