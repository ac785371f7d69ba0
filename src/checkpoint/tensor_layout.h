#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <openelm/config.h>

namespace openelm {

/// A tensor that a checkpoint must hold.
struct TensorSpec {
  std::string name;  ///< canonical
  std::vector<std::int64_t> shape;
};

/// Every tensor of an architecture; matrices are [out, in].
std::vector<TensorSpec> expected_tensors(const ModelConfig& config);

/// Hugging Face's and CoreNet's spellings brought to the canonical name: without "transformer.",
/// the head as "lm_head.weight". The parts of quantised matrices (".scales") likewise.
std::string canonical_name(std::string_view spelled);

}  // namespace openelm
