#include "model/quantize_plan.h"

#include <openelm/error.h>

#include "checkpoint/message_text.h"
#include "model/row_major.h"
#include "quant/quantize.h"
#include "quant/quantized_format.h"

namespace openelm {
namespace {

bool is_matrix(const TensorView& tensor) { return tensor.shape.size() == 2; }

}  // namespace

bool is_vocabulary(std::string_view name) noexcept {
  return name == "token_embeddings.weight" || name == "lm_head.weight";
}

WeightFormat planned_format(const QuantizeOptions& options, std::string_view name,
                            const TensorView& tensor) noexcept {
  if (!is_matrix(tensor)) return tensor.format;
  return quantized_format(options, is_vocabulary(name), tensor.format.type, tensor.shape[1]);
}

std::optional<std::string> describe_kept(const QuantizeOptions& options,
                                         const TensorSource& tensors) {
  std::size_t matrices = 0;
  std::size_t kept = 0;
  std::string first;
  for (const auto& [name, tensor] : tensors.all()) {
    if (!is_matrix(tensor)) continue;
    ++matrices;
    if (planned_format(options, name, tensor).affine()) continue;
    if (kept++ == 0) first = in_quotes(tensor.name) + " " + shape_text(tensor.shape);
  }
  if (kept == 0) return std::nullopt;
  return std::to_string(kept) + " of " + std::to_string(matrices) +
         " matrices are not quantised: their width is no multiple of " +
         std::to_string(options.group_size) + ", the first is " + first;
}

void require_plain(const TensorSource& tensors) {
  for (const auto& [name, tensor] : tensors.all()) {
    if (!tensor.format.affine()) continue;
    throw Error(place_of(tensor) + " is quantised already (" + to_string(tensor.format) +
                "): quantising takes a model of bf16, f16 or f32 weights");
  }
}

void fail_unquantizable(const TensorView& tensor, std::int64_t row) {
  throw Error(place_of(tensor) +
              " cannot be quantised: " + unquantizable_reason(row_major(tensor), row));
}

}  // namespace openelm
