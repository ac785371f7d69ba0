#include "base/mapped_file.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include <openelm/error.h>

#include "checkpoint/model_folder.h"

namespace openelm::test {
namespace {

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string message(const std::filesystem::path& path) {
  return message_of([&] { const MappedFile file(path); });
}

TEST(MappedFile, ShowsTheWholeFile) {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += static_cast<char>(i * 7);
  write_file(folder / "f", text);
  const MappedFile file(folder / "f");
  EXPECT_EQ(file.path(), folder / "f");
  EXPECT_EQ(text_of(file), text);
}

TEST(MappedFile, ReleasedPartsCanBeReadAgain) {
  const TempFolder folder;
  const std::string text(50'000, 'x');
  write_file(folder / "f", text);
  const MappedFile file(folder / "f");
  for (const std::size_t begin : {0U, 1U, 4095U, 4096U, 30'000U}) {
    for (const std::size_t size : {0U, 1U, 4096U, 20'000U}) {
      file.release(file.bytes().subspan(begin, size));
      EXPECT_EQ(text_of(file), text);
    }
  }
}

TEST(MappedFile, ErrorsNamePathAndReason) {
  const TempFolder folder;
  const std::string path = folder.path().string();
  EXPECT_EQ(message(folder.path()), path + ": is a folder, expected a file");
  EXPECT_EQ(message(folder / "f"), path + "/f: cannot open: No such file or directory");
  write_file(folder / "f", "");
  EXPECT_EQ(message(folder / "f"), path + "/f: the file is empty (0 bytes)");
  std::filesystem::create_symlink("gone", folder / "link");
  EXPECT_EQ(message(folder / "link"),
            path + "/link: is a dangling link: its target gone does not exist");
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_EQ(message(folder / "loop"),
            path + "/loop: cannot open: Too many levels of symbolic links");
  EXPECT_EQ(message("/dev/null"), "/dev/null: is not a regular file");
}

}  // namespace
}  // namespace openelm::test
