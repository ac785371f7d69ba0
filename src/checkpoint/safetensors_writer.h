#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace openelm {

/// A tensor of a file that is going to be written.
struct SafetensorsItem {
  std::string name;
  std::string dtype;  ///< "U32", "BF16", ...
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;  ///< what dtype and shape come to
};

/// A safetensors file whose tensors are written in parts, in any order and from several threads.
/// The header says {"format": "mlx"}, and its padding puts the data at a multiple of 8.
class SafetensorsWriter {
 public:
  /// Creates the file, which must not exist, with its header and room for all data. Throws Error.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<SafetensorsItem>& tensors);
  ~SafetensorsWriter();
  SafetensorsWriter(const SafetensorsWriter&) = delete;
  SafetensorsWriter& operator=(const SafetensorsWriter&) = delete;

  /// Writes a part of tensor number `tensor`, from its byte `offset` on. Returns 0 or the system's
  /// error number.
  int write(std::size_t tensor, std::uint64_t offset,
            std::span<const std::byte> part) const noexcept;

  /// Throws the Error that stands for an error number of `write`.
  [[noreturn]] void fail(int error) const;

  /// Of the whole file.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  std::filesystem::path path_;
  int file_ = -1;
  std::vector<std::uint64_t> begins_;  // of the tensors, in the file
  std::uint64_t bytes_ = 0;
};

}  // namespace openelm
