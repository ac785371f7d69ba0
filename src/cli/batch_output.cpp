#include "cli/batch_output.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/write_all.h"

namespace openelm::cli {
namespace {

/// How much may be lost when the whole machine fails; a killed process loses nothing.
constexpr std::chrono::seconds kSyncInterval{1};
constexpr std::size_t kMostWaiting = 4096;
constexpr std::size_t kMostWaitingBytes = std::size_t{64} << 20;

int open_output(const std::string& path) {
  if (path == "-") return STDOUT_FILENO;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) throw Error(path + ": cannot be written: " + std::strerror(errno));
  return descriptor;
}

}  // namespace

LineFile::LineFile(const std::string& path)
    : name_(path == "-" ? "standard output" : path),
      descriptor_(open_output(path)),
      next_sync_(std::chrono::steady_clock::now() + kSyncInterval) {
  struct stat status {};
  if (descriptor_ == STDOUT_FILENO || ::fstat(descriptor_, &status) != 0) return;
  regular_ = S_ISREG(status.st_mode);
  if (!regular_) return;
  size_ = static_cast<std::uint64_t>(status.st_size);
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    throw Error(name_ + ": another process is writing it");
  }
}

LineFile::~LineFile() {
  if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) ::close(descriptor_);
}

void LineFile::truncate(std::uint64_t size) {
  if (::ftruncate(descriptor_, static_cast<off_t>(size)) != 0) fail(errno);
  size_ = size;
}

void LineFile::write_line(std::string line) {
  line += '\n';
  if (const int error = write_all(descriptor_, line); error != 0) {
    // A torn line would be no harm to --resume, but others read the file, too.
    if (regular_) [[maybe_unused]]
      const int ignored = ::ftruncate(descriptor_, static_cast<off_t>(size_));
    fail(error);
  }
  size_ += line.size();
  if (!regular_ || std::chrono::steady_clock::now() < next_sync_) return;
  if (::fdatasync(descriptor_) != 0) fail(errno);
  next_sync_ = std::chrono::steady_clock::now() + kSyncInterval;
}

void LineFile::close() {
  if (descriptor_ == STDOUT_FILENO) return;  // the program closes it
  if (regular_ && ::fsync(descriptor_) != 0) fail(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail(errno);
}

void LineFile::fail(int error) {
  throw Error("cannot write to " + name_ + ": " +
              (error == EPIPE ? "its reader has gone away" : std::strerror(error)));
}

bool BatchOutput::has_room() const noexcept {
  return waiting_.size() < kMostWaiting && waiting_bytes_ < kMostWaitingBytes;
}

void BatchOutput::put(std::uint64_t place, std::string line, bool failed) {
  if (unordered_) {
    write({std::move(line), failed});
    return;
  }
  waiting_bytes_ += line.size();
  waiting_.emplace(place, Line{std::move(line), failed});
  while (!waiting_.empty() && waiting_.begin()->first == next_place_) {
    auto next = waiting_.extract(waiting_.begin());
    waiting_bytes_ -= next.mapped().text.size();
    ++next_place_;
    write(std::move(next.mapped()));
  }
}

void BatchOutput::write(Line line) {
  file_.write_line(std::move(line.text));
  if (line.failed) ++failures_written_;
}

}  // namespace openelm::cli
