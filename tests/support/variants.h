#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/kernels.h"

namespace openelm::test {

/// Names of the kernel variants that this CPU can run, for tests parameterised over them. Where
/// tests run in an emulator, OPENELM_TEST_VARIANT names the only one to spend time on.
inline std::vector<std::string> runnable_variants() {
  const char* const only = std::getenv("OPENELM_TEST_VARIANT");
  std::vector<std::string> names;
  for (const kernels::Variant& v : kernels::variants()) {
    if (v.table == nullptr || !v.supported) continue;
    if (v.table->name != std::string(v.name)) continue;  // another name for the same kernels
    if (only == nullptr || std::string(only) == v.name) names.emplace_back(v.name);
  }
  return names;
}

/// The name of a test case that has a variant and a checkpoint.
inline std::string variant_and_checkpoint(
    const testing::TestParamInfo<std::tuple<std::string, std::string>>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace openelm::test
