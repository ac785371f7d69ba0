#include "base/mapped_file.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw Error(path.string() + ": " + reason);
}

std::string reason_of(int error) { return std::generic_category().message(error); }

/// Closes on every way out; the mapping outlives the descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { ::close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

int open_for_reading(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe in place of the file would wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) return fd;
  const int error = errno;
  std::error_code ignored;
  if (error == ENOENT && std::filesystem::is_symlink(path, ignored)) {
    const auto target = std::filesystem::read_symlink(path, ignored);
    fail(path, "is a dangling link: its target " + target.string() + " does not exist");
  }
  fail(path, "cannot open: " + reason_of(error));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(open_for_reading(path));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, "cannot examine: " + reason_of(errno));
  if (S_ISDIR(status.st_mode)) fail(path, "is a folder, expected a file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file");
  if (status.st_size == 0) fail(path, "the file is empty (0 bytes)");

  size_ = static_cast<std::size_t>(status.st_size);
  void* const mapping = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) {
    fail(path, "cannot map " + std::to_string(size_) + " bytes: " + reason_of(errno));
  }
  data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const noexcept {
  // Pages at the ends may be shared with a neighbour that is still being read.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + part.size()) / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace openelm
