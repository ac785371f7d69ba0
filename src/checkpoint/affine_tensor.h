#pragma once

#include "checkpoint/quantization_config.h"
#include "checkpoint/tensor_layout.h"
#include "checkpoint/tensor_source.h"
#include "checkpoint/weight_files.h"

namespace openelm {

/// The three tensors that MLX stores a quantised matrix [n, k] in: little-endian bit fields, U32 of
/// shape [n, k * bits / 32]; scales and biases, [n, k / group_size] in one of the weight types.
struct AffineParts {
  const StoredTensor& weight;
  const StoredTensor& scales;
  const StoredTensor& biases;
};

/// The matrix as one view of shape [n, k]. k is that of `spec`; n is what the file holds, which may
/// be more than the specification has. Throws Error, naming the tensor and both numbers, when a
/// part has another type or shape than `groups` demand.
TensorView view_affine(const AffineParts& parts, const AffineGroups& groups,
                       const TensorSpec& spec);

}  // namespace openelm
