#include "base/atomic_file.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/write_all.h"

namespace openelm {
namespace {

namespace fs = std::filesystem;

/// A file under construction, which goes away with the object unless it was put in place.
class PartialFile {
 public:
  PartialFile(const fs::path& destination, unsigned mode)
      : destination_(destination),
        path_(destination.parent_path() /
              ("." + destination.filename().string() + ".partial-" + std::to_string(::getpid()))) {
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                   static_cast<mode_t>(mode));
    if (file_ < 0) fail(errno);
  }
  ~PartialFile() {
    if (file_ >= 0) ::close(file_);
    if (!placed_) ::unlink(path_.c_str());
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  void write(std::string_view bytes) {
    if (const int error = write_all(file_, bytes); error != 0) fail(error);
  }

  void set_mode(mode_t mode) {
    if (::fchmod(file_, mode) != 0) fail(errno);
  }

  void place() {
    if (::fsync(file_) != 0) fail(errno);
    const int closed = ::close(file_);
    file_ = -1;
    if (closed != 0 && errno != EINTR) fail(errno);
    if (::rename(path_.c_str(), destination_.c_str()) != 0) fail(errno);
    placed_ = true;
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw Error(destination_.string() +
                ": cannot write: " + std::generic_category().message(error));
  }

  fs::path destination_;
  fs::path path_;
  int file_ = -1;
  bool placed_ = false;
};

}  // namespace

void write_file_atomically(const fs::path& file, std::string_view bytes, unsigned mode) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(file, error);
  const fs::path& destination = error ? file : resolved;
  struct stat old {};
  const bool replaces = ::stat(destination.c_str(), &old) == 0;
  if (replaces && !S_ISREG(old.st_mode)) {
    throw Error(file.string() + ": cannot write: this is no plain file");
  }
  PartialFile partial(destination, mode);
  if (replaces) partial.set_mode(old.st_mode & 07777U);
  partial.write(bytes);
  partial.place();
}

}  // namespace openelm
