// Where a model folder may lie, and what may stand in its place.

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

namespace fs = std::filesystem;

/// Goes back to the former working folder at the end.
class WorkingFolder {
 public:
  explicit WorkingFolder(const fs::path& path) : before_(fs::current_path()) {
    fs::current_path(path);
  }
  ~WorkingFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

TEST(ModelPath, HubCacheOfLinksOpensUnderTheRepositorysName) {
  const TempFolder cache;
  const fs::path repository = cache / "models--apple--OpenELM-270M";
  const fs::path snapshot = repository / "snapshots" / "abc123";
  fs::create_directories(snapshot);
  fs::create_directories(repository / "blobs");
  ModelFolder::load().write(repository / "blobs");
  fs::create_symlink("../../blobs/config.json", snapshot / "config.json");
  fs::create_symlink("../../blobs/model.safetensors", snapshot / "model.safetensors");
  EXPECT_EQ(open_checkpoint(snapshot).config.name, "apple/OpenELM-270M");

  fs::remove(repository / "blobs" / "model.safetensors");
  expect_error(snapshot, {"model.safetensors", "dangling link", "../../blobs/model.safetensors"});
}

TEST(ModelPath, LinkedFolderOpens) {
  const TempFolder folder;
  fs::create_directory(folder / "real");
  ModelFolder::load().write(folder / "real");
  fs::create_directory_symlink("real", folder / "link");
  EXPECT_EQ(open_checkpoint(folder / "link").config.name, "link");
}

TEST(ModelPath, DanglingLinksAreNamed) {
  const TempFolder folder;
  fs::create_symlink("nowhere", folder / "model");
  expect_error(folder / "model", {"model", "dangling link"});
  fs::create_symlink("nowhere", folder / "config.json");
  expect_error(folder.path(), {"config.json", "dangling link", "nowhere"});
}

TEST(ModelPath, LinkLoopsAreRefused) {
  const TempFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  expect_error(folder / "a", {"a: cannot open the model folder", "symbolic links"});
  const ModelFolder model = ModelFolder::load();
  model.write(folder.path());
  fs::remove(folder / "model.safetensors");
  fs::create_symlink("model.safetensors", folder / "model.safetensors");
  expect_error(folder.path(), {"model.safetensors", "symbolic links"});
}

TEST(ModelPath, SpacesAndOtherAlphabetsOpen) {
  const TempFolder folder;
  const fs::path path = folder / "a modèle 模型";
  fs::create_directory(path);
  ModelFolder::load().write(path);
  EXPECT_EQ(open_checkpoint(path).config.name, "a modèle 模型");
}

TEST(ModelPath, TrailingSlashAndRelativePathsOpen) {
  const TempFolder folder;
  fs::create_directory(folder / "tiny");
  ModelFolder::load().write(folder / "tiny");
  EXPECT_EQ(open_checkpoint(folder.path().string() + "/tiny/").config.name, "tiny");
  const WorkingFolder inside(folder / "tiny");
  EXPECT_EQ(open_checkpoint(".").config.name, "tiny");
  EXPECT_EQ(open_checkpoint("../tiny").config.name, "tiny");
}

TEST(ModelPath, ReadOnlyFolderOpensAndStaysAsItIs) {
  const TempFolder folder;
  ModelFolder::load().write(folder.path());
  fs::permissions(folder / "config.json", fs::perms::owner_read);
  fs::permissions(folder / "model.safetensors", fs::perms::owner_read);
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(error_of(folder.path()), std::nullopt);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 2);
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(ModelPath, WhatIsNoFolderIsRefused) {
  const TempFolder folder;
  expect_error("", {"path of the model folder is empty"});
  expect_error(folder / "absent", {"absent", "no such model folder"});
  write_file(folder / "model.safetensors", "x");
  expect_error(folder / "model.safetensors", {"is a file", "folder", "config.json and this file"});
  write_file(folder / "model.gguf", "GGUF");
  expect_error(folder / "model.gguf", {"model.gguf", "not supported in this version"});
  write_file(folder / "notes.txt", "x");
  expect_error(folder / "notes.txt", {"notes.txt", "is a file", "expected the model folder"});
  expect_error(folder / "notes.txt" / "deeper", {"deeper"});
  expect_error(folder.path(), {"config.json", "No such file"});
}

TEST(ModelPath, UnreadableFolderIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root reads everything";
  const TempFolder folder;
  ModelFolder::load().write(folder.path());
  fs::permissions(folder / "config.json", fs::perms::none);
  expect_error(folder.path(), {"config.json", "Permission denied"});
}

TEST(ModelPath, PipeInPlaceOfAFileDoesNotHang) {
  const TempFolder folder;
  ModelFolder::load().write(folder.path());
  fs::remove(folder / "model.safetensors");
  ASSERT_EQ(::mkfifo((folder / "model.safetensors").c_str(), 0600), 0);
  expect_error(folder.path(), {"model.safetensors", "not a regular file"});
}

}  // namespace
}  // namespace openelm::test
