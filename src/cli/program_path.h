#pragma once

#include <filesystem>

namespace openelm::cli {

/// The running program's own file, symbolic links resolved; empty if the system does not tell.
std::filesystem::path program_path();

}  // namespace openelm::cli
