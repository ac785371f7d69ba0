#pragma once

#include <filesystem>
#include <string>

namespace openelm {

/// What tells one model from another without reading all of it: SHA-256, as 64 lower-case
/// hexadecimal digits, over config.json, and of each weight file, in the order of their names, its
/// size, its safetensors header, and blocks spread evenly over its data. Names and places of files
/// do not count, so a copy of a model has its fingerprint. Throws Error when a file is missing,
/// unreadable or damaged.
std::string model_fingerprint(const std::filesystem::path& folder);

}  // namespace openelm
