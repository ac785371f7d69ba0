#include "base/staged_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm {
namespace {

namespace fs = std::filesystem;

class Staged : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(parent_);
    fs::create_directories(parent_);
  }
  void TearDown() override { fs::remove_all(parent_); }

  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  static std::string read(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// Everything in the parent, hidden files too.
  std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(parent_), fs::directory_iterator());
  }

  fs::path parent_ =
      fs::temp_directory_path() / ("openelm-staged-test-" + std::to_string(::getpid()));
  fs::path destination_ = parent_ / "model";
};

TEST_F(Staged, AppearsWhenCommitted) {
  StagedFolder staged(destination_);
  write(staged.path() / "a", "new");
  staged.sync();
  EXPECT_FALSE(fs::exists(destination_));
  staged.commit();
  EXPECT_EQ(read(destination_ / "a"), "new");
  EXPECT_EQ(entries(), 1);
  // As other new folders: nothing more private.
  fs::create_directory(parent_ / "other");
  EXPECT_EQ(fs::status(destination_).permissions(), fs::status(parent_ / "other").permissions());
}

TEST_F(Staged, GoesAwayWithoutACommit) {
  {
    const StagedFolder staged(destination_);
    write(staged.path() / "a", "half");
    EXPECT_EQ(staged.path().parent_path(), parent_);
    EXPECT_TRUE(staged.path().filename().string().starts_with("."));
  }
  EXPECT_EQ(entries(), 0);
}

TEST_F(Staged, ReplacesAFolderAsAWhole) {
  fs::create_directory(destination_);
  write(destination_ / "a", "old");
  write(destination_ / "b", "old");
  std::optional<StagedFolder> staged(std::in_place, destination_);
  write(staged->path() / "a", "new");
  EXPECT_EQ(read(destination_ / "a"), "old");
  staged->commit();
  staged.reset();
  EXPECT_EQ(read(destination_ / "a"), "new");
  EXPECT_FALSE(fs::exists(destination_ / "b"));
  EXPECT_EQ(entries(), 1);
}

TEST_F(Staged, TwoAtATimeDoNotMeet) {
  StagedFolder first(destination_);
  StagedFolder second(destination_);
  EXPECT_NE(first.path(), second.path());
}

TEST_F(Staged, FailuresNameThePlace) {
  try {
    const StagedFolder staged(parent_ / "missing" / "model");
    ADD_FAILURE() << "no Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cannot make a folder"), std::string::npos);
  }
}

TEST_F(Staged, WhatCannotBePutInPlaceGoesAwayAndTheOldStays) {
  fs::create_directory(destination_);
  write(destination_ / "a", "old");
  {
    StagedFolder staged(destination_);
    fs::remove_all(staged.path());
    EXPECT_THROW(staged.commit(), Error);
  }
  EXPECT_EQ(read(destination_ / "a"), "old");
  EXPECT_EQ(entries(), 1);
}

}  // namespace
}  // namespace openelm
