#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include <openelm/config.h>

namespace openelm {

/// Whether a config.json is one that corenet's MLX example writes: it names one of the four sizes
/// instead of describing an architecture.
bool is_mlx_config(const nlohmann::json& config);

/// The architecture of "OpenELM-270M", "OpenELM-450M", "OpenELM-1_1B" or "OpenELM-3B"
/// (corenet's mlx_examples/open_elm/open_elm.py). Throws Error.
ModelConfig parse_mlx_config(const nlohmann::json& config, const std::filesystem::path& file);

}  // namespace openelm
