#include "quant/quantized_format.h"

#include <algorithm>
#include <string>

#include <openelm/error.h>

namespace openelm {
void check_quantize_options(const QuantizeOptions& options) {
  for (const std::int32_t bits : {options.bits, options.head_bits}) {
    if (std::ranges::find(kAffineBits, bits) == kAffineBits.end()) {
      throw UsageError("quantize: expected 4 or 8 bits, got " + std::to_string(bits));
    }
  }
  if (std::ranges::find(kAffineGroupSizes, options.group_size) == kAffineGroupSizes.end()) {
    throw UsageError("quantize: expected groups of 32, 64 or 128, got " +
                     std::to_string(options.group_size));
  }
}

WeightFormat quantized_format(const QuantizeOptions& options, bool vocabulary, WeightType type,
                              std::int64_t k) noexcept {
  if (k % options.group_size != 0) return {.type = type};
  return {.type = type == WeightType::f32 ? WeightType::f16 : type,
          .bits = vocabulary ? options.head_bits : options.bits,
          .group_size = options.group_size};
}

}  // namespace openelm
