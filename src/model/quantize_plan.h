#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <openelm/config.h>
#include <openelm/quantization.h>

#include "checkpoint/tensor_source.h"

namespace openelm {

/// Whether a matrix has a row for each token: the embedding and the head.
bool is_vocabulary(std::string_view name) noexcept;

/// What quantising makes of a tensor, in memory and in files: norms, and matrices whose width is no
/// multiple of the group size, keep their format. `name` is the canonical one.
WeightFormat planned_format(const QuantizeOptions& options, std::string_view name,
                            const TensorView& tensor) noexcept;

/// Which matrices stay as they are, in one line; nothing if all are quantised.
std::optional<std::string> describe_kept(const QuantizeOptions& options,
                                         const TensorSource& tensors);

/// Throws Error when a tensor is quantised already: its weights are not what they were.
void require_plain(const TensorSource& tensors);

/// Throws Error that says why `row` of a plain matrix cannot be quantised.
[[noreturn]] void fail_unquantizable(const TensorView& tensor, std::int64_t row);

}  // namespace openelm
