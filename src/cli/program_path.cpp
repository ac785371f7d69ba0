#include "cli/program_path.h"

#include <array>
#include <system_error>

#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

namespace openelm::cli {

std::filesystem::path program_path() {
  std::error_code ignored;
#ifdef __APPLE__
  std::array<char, 4096> buffer{};
  auto size = static_cast<std::uint32_t>(buffer.size());
  if (_NSGetExecutablePath(buffer.data(), &size) != 0) return {};
  return std::filesystem::canonical(buffer.data(), ignored);
#else
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
#endif
}

}  // namespace openelm::cli
