#include "quant/quantized_format.h"

#include <algorithm>
#include <initializer_list>
#include <string>

#include <openelm/error.h>

namespace openelm {
namespace {

bool is_one_of(std::int32_t value, std::initializer_list<std::int32_t> values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

void check_quantize_options(const QuantizeOptions& options) {
  for (const std::int32_t bits : {options.bits, options.head_bits}) {
    if (!is_one_of(bits, {4, 8})) {
      throw UsageError("quantize: expected 4 or 8 bits, got " + std::to_string(bits));
    }
  }
  if (!is_one_of(options.group_size, {32, 64, 128})) {
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
