#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace openelm::cli {

/// A file, or standard output, that grows by whole lines. A second process that writes the same
/// file is kept out.
class LineFile {
 public:
  /// Opens `path` ("-": standard output) at its end; it is made if need be. Throws Error.
  explicit LineFile(const std::string& path);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  /// Of a regular file only, which can be gone on with; not of a pipe or a device.
  bool is_regular() const noexcept { return regular_; }
  std::uint64_t size() const noexcept { return size_; }
  void truncate(std::uint64_t size);

  /// Writes the line and its end. Throws Error when that fails, and takes away what was written of
  /// it.
  void write_line(std::string line);

  /// Puts everything on the disk. Throws Error.
  void close();

 private:
  [[noreturn]] void fail(int error);

  std::string name_;
  int descriptor_;
  bool regular_ = false;
  std::uint64_t size_ = 0;
  std::chrono::steady_clock::time_point next_sync_;
};

/// Lines of finished records on their way to the file: in the order of the input or, `unordered`,
/// as they come.
class BatchOutput {
 public:
  BatchOutput(LineFile& file, bool unordered) : file_(file), unordered_(unordered) {}

  /// Whether another record may be begun, or too many wait for an earlier one.
  bool has_room() const noexcept;

  /// A finished line. `place` counts the records of the run, from 0.
  void put(std::uint64_t place, std::string line, bool failed);

  /// Failed records among the lines written.
  std::uint64_t failures_written() const noexcept { return failures_written_; }

 private:
  struct Line {
    std::string text;
    bool failed;
  };

  void write(Line line);

  LineFile& file_;
  bool unordered_;
  std::uint64_t next_place_ = 0;
  std::map<std::uint64_t, Line> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t failures_written_ = 0;
};

}  // namespace openelm::cli
