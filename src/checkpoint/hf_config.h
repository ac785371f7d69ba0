#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include <openelm/config.h>

namespace openelm {

/// The architecture that a Hugging Face OpenELM config.json describes. Heads per layer follow from
/// the multipliers and must equal the lists that the file also holds; where
/// qkv_multipliers or num_gqa_groups is absent, the lists stand alone. `file` begins the messages.
/// The name is left empty. Throws Error.
ModelConfig parse_hf_config(const nlohmann::json& config, const std::filesystem::path& file);

}  // namespace openelm
