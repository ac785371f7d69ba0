#pragma once

#include <cstdint>

#include <openelm/config.h>
#include <openelm/quantization.h>

namespace openelm {

/// Throws UsageError unless bits are 4 or 8 and the group size is 32, 64 or 128.
void check_quantize_options(const QuantizeOptions& options);

/// The format that a plain matrix of width `k` is quantised to, the one rule of the loader and of
/// the files that are written. `vocabulary`: the embedding or the head. A matrix whose width is no
/// multiple of the group size stays as it is. Scales and biases keep the matrix's own type, as in
/// MLX, so that a bf16 model stays one; f32 matrices get f16 ones, whose 11 bits are more than the
/// quants resolve and which cost half a bit less per weight in groups of 64.
WeightFormat quantized_format(const QuantizeOptions& options, bool vocabulary, WeightType type,
                              std::int64_t k) noexcept;

}  // namespace openelm
