#include "checkpoint/affine_tensor.h"

#include <string>

#include "checkpoint/message_text.h"

namespace openelm {
namespace {

constexpr std::int64_t kWordBits = 32;

/// "4-bit weights in groups of 64 for [3072, 1280]"
std::string demand_text(const AffineGroups& groups, const TensorSpec& spec) {
  return std::to_string(groups.bits) + "-bit weights in groups of " +
         std::to_string(groups.group_size) + " (config.json) for " + shape_text(spec.shape);
}

void require_part(const StoredTensor& part, const std::vector<std::int64_t>& shape,
                  const AffineGroups& groups, const TensorSpec& spec) {
  if (part.entry.shape == shape) return;
  fail_at(part, "has shape " + shape_text(part.entry.shape) + ", " + demand_text(groups, spec) +
                    " need " + shape_text(shape));
}

}  // namespace

TensorView view_affine(const AffineParts& parts, const AffineGroups& groups,
                       const TensorSpec& spec) {
  const SafetensorsEntry& weight = parts.weight.entry;
  const std::int64_t columns = spec.shape[1];
  if (columns % groups.group_size != 0) {
    fail_at(parts.weight, "is quantised, but its " + std::to_string(columns) +
                              " columns are no multiple of the group size " +
                              std::to_string(groups.group_size) + " in config.json");
  }
  if (weight.dtype != "U32") {
    fail_at(parts.weight,
            "has dtype " + in_quotes(weight.dtype) + " and scales, quantised weights are U32");
  }
  const std::int64_t rows = weight.shape.empty() ? 0 : weight.shape[0];
  require_part(parts.weight, {rows, columns * groups.bits / kWordBits}, groups, spec);

  const auto type = weight_type_of(parts.scales.entry.dtype);
  for (const StoredTensor* part : {&parts.scales, &parts.biases}) {
    if (!type || part->entry.dtype != parts.scales.entry.dtype) {
      fail_at(*part, "has dtype " + in_quotes(part->entry.dtype) +
                         ", scales and biases may be F32, F16 or BF16, both the same");
    }
    require_part(*part, {rows, columns / groups.group_size}, groups, spec);
  }
  return {.name = weight.name,
          .format = {.type = *type, .bits = groups.bits, .group_size = groups.group_size},
          .shape = {rows, columns},
          .data = weight.data,
          .scales = parts.scales.entry.data,
          .biases = parts.biases.entry.data,
          .file = parts.weight.file};
}

}  // namespace openelm
