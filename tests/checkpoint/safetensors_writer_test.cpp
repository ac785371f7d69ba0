#include "checkpoint/safetensors_writer.h"

#include <cerrno>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/model_folder.h"
#include "checkpoint/safetensors.h"

namespace openelm::test {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

class Writer : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_ / "model.safetensors"; }

  TempFolder folder_;
  const std::vector<SafetensorsItem> items_ = {
      {"b.weight", "U32", {2, 3}, 24}, {"a \"quoted\"", "BF16", {5}, 10}, {"c", "F32", {1}, 4}};
};

TEST_F(Writer, PartsInAnyOrderMakeAFileThatIsRead) {
  {
    const SafetensorsWriter writer(path(), items_);
    EXPECT_EQ(writer.write(1, 4, bytes_of("456789")), 0);
    EXPECT_EQ(writer.write(2, 0, bytes_of("wxyz")), 0);
    EXPECT_EQ(writer.write(0, 0, bytes_of("ABCDEFGHIJKL")), 0);
    EXPECT_EQ(writer.write(1, 0, bytes_of("0123")), 0);
    EXPECT_EQ(writer.write(0, 12, bytes_of("MNOPQRSTUVWX")), 0);
    EXPECT_EQ(writer.write(0, 24, {}), 0);
    EXPECT_EQ(writer.bytes(), std::filesystem::file_size(path()));
  }
  const std::string file = read_file(path());
  EXPECT_TRUE(file.ends_with("ABCDEFGHIJKLMNOPQRSTUVWX0123456789wxyz"));
  EXPECT_EQ((file.size() - 38) % 8, 0U);
  EXPECT_EQ(Safetensors::parse(file).header["__metadata__"]["format"], "mlx");
  const auto entries = parse_safetensors(bytes_of(file), "file");
  ASSERT_EQ(entries.size(), 3U);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(entries[i].name, items_[i].name);
    EXPECT_EQ(entries[i].dtype, items_[i].dtype);
    EXPECT_EQ(entries[i].shape, items_[i].shape);
    EXPECT_EQ(entries[i].data.size(), items_[i].bytes);
  }
}

TEST_F(Writer, AFileThatIsThereIsNotTouched) {
  write_file(path(), "precious");
  const std::string error = message_of([&] { const SafetensorsWriter writer(path(), items_); });
  EXPECT_NE(error.find("model.safetensors: cannot write: File exists"), std::string::npos) << error;
  EXPECT_EQ(read_file(path()), "precious");
}

TEST_F(Writer, ErrorNumbersBecomeErrors) {
  const SafetensorsWriter writer(path(), items_);
  EXPECT_NE(message_of([&] { writer.fail(ENOSPC); }).find("No space left"), std::string::npos);
}

}  // namespace
}  // namespace openelm::test
