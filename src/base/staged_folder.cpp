#include "base/staged_folder.h"

#include <cerrno>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm {
namespace {

namespace fs = std::filesystem;

constexpr int kMostNames = 1000;

/// A hidden neighbour of `path` that does not exist, told apart by the process and a number.
fs::path neighbour(const fs::path& path, const char* kind, int number) {
  return path.parent_path() / ("." + path.filename().string() + "." + kind + "-" +
                               std::to_string(::getpid()) + "-" + std::to_string(number));
}

fs::path make_neighbour(const fs::path& path, const char* kind) {
  std::error_code error;
  for (int i = 0; i < kMostNames; ++i) {
    const fs::path name = neighbour(path, kind, i);
    if (fs::create_directory(name, error)) return name;
    if (error && error != std::errc::file_exists) break;
  }
  throw Error(path.string() + ": cannot make a folder in " + path.parent_path().string() + ": " +
              error.message());
}

/// 0 or the system's error number.
int sync_path(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int error = file < 0 || ::fsync(file) != 0 ? errno : 0;
  if (file >= 0) ::close(file);
  return error;
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& destination)
    : destination_(destination), path_(make_neighbour(destination, "partial")) {}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void StagedFolder::sync() const {
  for (const fs::directory_entry& entry : fs::directory_iterator(path_)) {
    const int error = sync_path(entry.path());
    if (error == 0) continue;
    throw Error(entry.path().string() +
                ": cannot write: " + std::generic_category().message(error));
  }
  sync_path(path_);  // best effort: not every file system can do this for folders
}

void StagedFolder::commit() {
  std::error_code error;
  fs::path old;
  if (fs::exists(fs::symlink_status(destination_, error))) {
    old = make_neighbour(destination_, "old");
    // Onto the empty folder just made.
    fs::rename(destination_, old, error);
    if (error) {
      std::error_code ignored;
      fs::remove(old, ignored);
      throw Error(destination_.string() + ": cannot be replaced: " + error.message());
    }
  }
  fs::rename(path_, destination_, error);
  if (error) {
    std::error_code ignored;
    if (!old.empty()) fs::rename(old, destination_, ignored);
    throw Error(destination_.string() + ": cannot put the folder here: " + error.message());
  }
  path_.clear();
  std::error_code ignored;
  if (!old.empty()) fs::remove_all(old, ignored);
  sync_path(destination_.parent_path());
}

}  // namespace openelm
