#pragma once

#include <filesystem>
#include <string_view>

namespace openelm {

/// Writes a file that appears whole or not at all: beside its destination first, to the disk, then
/// in its place. A file that is there keeps its permissions; a symbolic link keeps pointing to it.
/// `mode`: permissions of a new file, less the process's umask. Throws Error.
void write_file_atomically(const std::filesystem::path& file, std::string_view bytes,
                           unsigned mode = 0666);

}  // namespace openelm
