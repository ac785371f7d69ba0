#include "cli/batch_input.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{100};
constexpr std::size_t kLongestLine = std::size_t{64} << 20;

int open_input(const std::string& path) {
  if (path == "-") return STDIN_FILENO;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
    throw Error(path + ": cannot be read: " + std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw Error(path + ": is a folder, not a file of records");
  }
  return descriptor;
}

}  // namespace

BatchInput::BatchInput(const std::string& path, const Shard& shard, const BatchRecordParser& parser,
                       const FinishedRecords& finished, std::size_t ahead)
    : name_(path == "-" ? "standard input" : path),
      descriptor_(open_input(path)),
      shard_(shard),
      parser_(parser),
      finished_(finished),
      ahead_(ahead),
      thread_([this] {
        try {
          read_all();
        } catch (...) {
          const std::scoped_lock lock(mutex_);
          failure_ = std::current_exception();
        }
        const std::scoped_lock lock(mutex_);
        ended_ = true;
        changed_.notify_all();
      }) {}

BatchInput::~BatchInput() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

void BatchInput::read_all() {
  LineReader reader(descriptor_, name_, kLongestLine);
  std::string line;
  std::uint64_t index = 0;
  while (true) {
    const LineReader::Result read = reader.read(line, stop_);
    if (read == LineReader::Result::end || read == LineReader::Result::interrupted) return;
    const bool too_long = read == LineReader::Result::too_long;
    if (!too_long && !parser_.is_record(line)) continue;
    const std::uint64_t this_one = index++;
    if (this_one % shard_.of != shard_.first) continue;
    BatchRecord record = too_long ? parser_.too_long(kLongestLine, reader.count(), this_one)
                                  : parser_.parse(line, reader.count(), this_one);
    if (finished_.contains(record)) continue;
    hand_over(std::move(record));
  }
}

void BatchInput::hand_over(BatchRecord record) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.size() < ahead_ || stop_; });
  queue_.push_back(std::move(record));
  changed_.notify_all();
}

BatchInput::Supply BatchInput::next(BatchRecord& record, bool wait,
                                    const std::atomic<bool>& interrupt) {
  std::unique_lock lock(mutex_);
  while (wait && queue_.empty() && !ended_ && !interrupt) changed_.wait_for(lock, kPatience);
  if (!queue_.empty()) {
    record = std::move(queue_.front());
    queue_.pop_front();
    changed_.notify_all();
    return Supply::record;
  }
  if (failure_) std::rethrow_exception(failure_);
  return ended_ ? Supply::end : Supply::none_yet;
}

std::optional<std::uint64_t> BatchInput::count_records() const {
  struct stat status {};
  if (descriptor_ == STDIN_FILENO || ::fstat(descriptor_, &status) != 0 ||
      !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::ifstream file(name_, std::ios::binary);
  std::uint64_t index = 0;
  std::uint64_t count = 0;
  std::string line;
  while (std::getline(file, line)) {
    if (parser_.is_record(line) && index++ % shard_.of == shard_.first) ++count;
  }
  return count;
}

}  // namespace openelm::cli
