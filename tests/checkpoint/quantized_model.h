#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/model_folder.h"

namespace openelm::test {

/// How the matrices of a made-up checkpoint are quantised.
struct Groups {
  std::int64_t bits = 4;
  std::int64_t size = 32;
  std::string dtype = "F16";  ///< of scales and biases
};

/// Puts quants, scales and biases, all of made-up bytes, in the place of every matrix whose width
/// is a multiple of the group size, and says so in the configuration.
void quantize_matrices(ModelFolder& model, const Groups& groups = {});

/// Puts a tensor of made-up bytes in the place of `name`, or adds it.
void replace_tensor(ModelFolder& model, const std::string& name, const std::string& dtype,
                    const std::vector<std::int64_t>& shape);

/// Takes a tensor out.
void remove_tensor(ModelFolder& model, const std::string& name);

}  // namespace openelm::test
