// Damaged files, at random but the same in every run: whatever the bytes, opening either works or
// throws Error with one line.

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "checkpoint/model_folder.h"
#include "checkpoint/quantized_model.h"

namespace openelm::test {
namespace {

class Damage {
 public:
  explicit Damage(std::uint32_t seed) : random_(seed) {}

  std::size_t below(std::size_t limit) { return random_() % limit; }

  /// `text` with a few bytes changed, cut, doubled or replaced by what such texts hold.
  std::string apply(std::string text) {
    static constexpr std::array<const char*, 14> kPieces = {
        "\"",      "{",   "}",    "[",     "]",   ",",
        ":",       "-1",  "null", "1e999", "NaN", "9223372036854775808",
        "\\u0000", "\xFF"};
    const std::size_t count = 1 + below(4);
    for (std::size_t i = 0; i < count && !text.empty(); ++i) {
      const std::size_t at = below(text.size());
      const std::size_t size = std::min(1 + below(12), text.size() - at);
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
          break;
        case 1:
          text[at] = static_cast<char>(below(256));
          break;
        case 2:
          text.erase(at, size);
          break;
        case 3:
          text.insert(at, text.substr(at, size));
          break;
        default:
          text.replace(at, size, kPieces[below(kPieces.size())]);
          break;
      }
    }
    return text;
  }

 private:
  std::mt19937 random_;
};

/// Opens the folder and reads a byte at each end of every tensor. Returns whether it opened.
bool open_and_touch(const std::filesystem::path& folder) {
  try {
    const Checkpoint checkpoint = open_checkpoint(folder);
    for (const auto& [name, tensor] : checkpoint.tensors.all()) {
      char ends[2];
      for (const auto part : {tensor.data, tensor.scales, tensor.biases}) {
        if (part.empty()) continue;
        std::memcpy(&ends[0], &part.front(), 1);
        std::memcpy(&ends[1], &part.back(), 1);
      }
      checkpoint.tensors.release(tensor);
    }
    return true;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_LT(text.size(), 2000U);
    return false;
  }
}

class Fuzz : public testing::Test {
 protected:
  void SetUp() override { model_.write(folder_.path()); }

  ModelFolder model_ = ModelFolder::load("tiny-mha");
  TempFolder folder_;
};

TEST_F(Fuzz, Config) {
  Damage damage(1);
  const std::string sound = model_.config.dump(1);
  int opened = 0;
  for (int i = 0; i < 3000; ++i) {
    write_file(folder_ / "config.json", damage.apply(sound));
    opened += open_and_touch(folder_.path());
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 3000);
}

TEST_F(Fuzz, HeaderBytesInPlace) {
  Damage damage(2);
  const std::string sound = model_.weights.bytes();
  const std::size_t header_end = sound.size() - model_.weights.data.size();
  const int file = ::open((folder_ / "model.safetensors").c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  int opened = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto at = static_cast<off_t>(damage.below(header_end));
    const char byte = static_cast<char>(damage.below(256));
    ASSERT_EQ(::pwrite(file, &byte, 1, at), 1);
    opened += open_and_touch(folder_.path());
    ASSERT_EQ(::pwrite(file, &sound[static_cast<std::size_t>(at)], 1, at), 1);
  }
  ::close(file);
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 3000);
}

TEST_F(Fuzz, HeaderText) {
  Damage damage(3);
  const std::string header = model_.weights.header.dump();
  for (int i = 0; i < 400; ++i) {
    write_file(folder_ / "model.safetensors", assemble(damage.apply(header), model_.weights.data));
    open_and_touch(folder_.path());
  }
}

class FuzzQuantized : public Fuzz {
 protected:
  void SetUp() override {
    quantize_matrices(model_);
    model_.config["quantization"]["transformer.layers.0.ffn.proj_1"] = {{"bits", 4},
                                                                        {"group_size", 32}};
    Fuzz::SetUp();
  }
};

TEST_F(FuzzQuantized, QuantizationOfTheConfig) {
  Damage damage(6);
  const std::string entry = model_.config["quantization"].dump();
  const std::string sound = model_.config.dump();
  int opened = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = sound;
    text.replace(text.find(entry), entry.size(), damage.apply(entry));
    write_file(folder_ / "config.json", text);
    opened += open_and_touch(folder_.path());
  }
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, 2000);
}

TEST_F(FuzzQuantized, HeaderText) {
  Damage damage(7);
  const std::string header = model_.weights.header.dump();
  for (int i = 0; i < 1000; ++i) {
    write_file(folder_ / "model.safetensors", assemble(damage.apply(header), model_.weights.data));
    open_and_touch(folder_.path());
  }
}

TEST_F(Fuzz, Truncation) {
  Damage damage(4);
  const std::size_t size = model_.weights.bytes().size();
  // Shrinking only, so that one file serves for all lengths.
  for (std::size_t length = size; length > 0;
       length -= 1 + damage.below(std::min<std::size_t>(length, 3000))) {
    if (length < size) {
      std::filesystem::resize_file(folder_ / "model.safetensors", length);
      EXPECT_FALSE(open_and_touch(folder_.path())) << length;
    }
  }
}

TEST_F(Fuzz, Index) {
  const std::filesystem::path path = folder_ / "model.safetensors.index.json";
  const std::string sound = model_.write_shards(folder_.path()).dump();
  write_file(path, sound);
  ASSERT_TRUE(open_and_touch(folder_.path()));
  Damage damage(5);
  for (int i = 0; i < 1000; ++i) {
    write_file(path, damage.apply(sound));
    open_and_touch(folder_.path());
  }
}

}  // namespace
}  // namespace openelm::test
