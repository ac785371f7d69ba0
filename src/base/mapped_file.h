#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace openelm {

/// A whole file, mapped read-only.
class MappedFile {
 public:
  /// Throws Error with the path and the system's reason; for a folder, says that it is one.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  const std::filesystem::path& path() const noexcept { return path_; }

  /// Lets the system drop the pages of a part of the file that has been read.
  void release(std::span<const std::byte> part) const noexcept;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace openelm
