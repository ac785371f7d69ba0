#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "checkpoint/tensor_source.h"

namespace openelm::test {

using OrderedJson = nlohmann::ordered_json;

/// A folder of its own that goes away with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, const std::string& bytes);

/// Eight bytes, little-endian.
std::string length_field(std::uint64_t length);

/// A safetensors file taken apart.
struct Safetensors {
  OrderedJson header;
  std::string data;

  static Safetensors parse(const std::string& bytes);

  /// Tensor names, in the order of their data.
  std::vector<std::string> names() const;

  /// Adds a tensor of zeros behind the others.
  void append(const std::string& name, const std::string& dtype,
              const std::vector<std::int64_t>& shape, std::size_t bytes);

  /// The tensors named, with data of their own.
  Safetensors subset(const std::vector<std::string>& names) const;

  /// A whole file; the header is padded with `pad` to a multiple of 8.
  std::string bytes(char pad = ' ') const;
};

/// A file around a header given as text.
std::string assemble(const std::string& header, const std::string& data);

/// The contents of a small one-file checkpoint, to be changed and written.
struct ModelFolder {
  OrderedJson config;
  Safetensors weights;

  /// tests/data/ckpt/<name>
  static ModelFolder load(const std::string& name = "tiny-gqa4");

  void write(const std::filesystem::path& folder,
             const std::string& weights_name = "model.safetensors") const;

  /// Writes the weights as two shards "a.safetensors" and "b.safetensors" and returns the index,
  /// which is not yet written.
  OrderedJson write_shards(const std::filesystem::path& folder) const;
};

/// Opens the folder; an Error's text, or nothing when it opens.
std::optional<std::string> error_of(const std::filesystem::path& folder);

/// Expects that the folder is refused with one line that holds every one of the words.
void expect_error(const std::filesystem::path& folder, const std::vector<std::string>& words);

/// The text of the Error that `action` throws; empty, and a failure of the test, if it throws none.
template <typename Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error";
  return {};
}

}  // namespace openelm::test
