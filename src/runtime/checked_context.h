#pragma once

#include <cstdint>

#include <openelm/config.h>

namespace openelm {

/// The context to make room for: `wanted`, or the model's own for 0. Throws UsageError for more
/// than the model's own.
std::int32_t checked_context(const ModelConfig& config, std::int32_t wanted);

}  // namespace openelm
