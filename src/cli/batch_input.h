#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/batch_record.h"
#include "cli/batch_resume.h"
#include "cli/line_reader.h"

namespace openelm::cli {

/// Every `of`-th record, from number `first` (from 0) on.
struct Shard {
  std::uint64_t first = 0;
  std::uint64_t of = 1;
};

/// The records of a file or of standard input, read, parsed and tokenised ahead on a thread of its
/// own, so that a slow writer of a pipe never holds up what is being generated.
class BatchInput {
 public:
  enum class Supply { record, none_yet, end };

  /// Opens `path` ("-": standard input). Records of `finished` are passed over. All references must
  /// outlive the object. Throws Error when the file cannot be read.
  BatchInput(const std::string& path, const Shard& shard, const BatchRecordParser& parser,
             const FinishedRecords& finished, std::size_t ahead);
  ~BatchInput();
  BatchInput(const BatchInput&) = delete;
  BatchInput& operator=(const BatchInput&) = delete;

  /// Waits a while, and no longer than until `interrupt` is set, if `wait`. Throws what went wrong
  /// with reading, or when the input is not the one that `finished` comes from.
  Supply next(BatchRecord& record, bool wait, const std::atomic<bool>& interrupt);

  /// Records of the shard, where the input is a regular file; it is read once for that.
  std::optional<std::uint64_t> count_records() const;

 private:
  void read_all();
  void hand_over(BatchRecord record);

  std::string name_;
  int descriptor_;
  Shard shard_;
  const BatchRecordParser& parser_;
  const FinishedRecords& finished_;
  std::size_t ahead_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BatchRecord> queue_;
  bool ended_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace openelm::cli
