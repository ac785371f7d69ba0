#pragma once

#include <filesystem>

namespace openelm {

/// A folder that is filled beside its destination and takes its place in one step when it is
/// complete. Until then it goes away with the object, so that nothing half-written stays behind.
class StagedFolder {
 public:
  /// Makes the folder, hidden, in the destination's parent. Throws Error when that cannot be done.
  explicit StagedFolder(const std::filesystem::path& destination);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Waits until all files are on the disk, since some file systems report a full one only then.
  /// Throws Error.
  void sync() const;

  /// Puts the folder at its destination. A folder that is there is removed afterwards, and put back
  /// if this fails. Throws Error.
  void commit();

 private:
  std::filesystem::path destination_;
  std::filesystem::path path_;
};

}  // namespace openelm
