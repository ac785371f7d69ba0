#include "checkpoint/safetensors_writer.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm {
namespace {

constexpr std::size_t kAlign = 8;

/// Writes all of `part`; 0 or errno.
int write_at(int file, std::uint64_t offset, std::span<const std::byte> part) noexcept {
  while (!part.empty()) {
    const ssize_t n = ::pwrite(file, part.data(), part.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return ENOSPC;
    part = part.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return 0;
}

std::string header_text(const std::vector<SafetensorsItem>& tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "mlx"}}}};
  std::uint64_t end = 0;
  for (const SafetensorsItem& tensor : tensors) {
    const std::uint64_t begin = end;
    end += tensor.bytes;
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.append((kAlign - text.size() % kAlign) % kAlign, ' ');
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     const std::vector<SafetensorsItem>& tensors)
    : path_(path) {
  const std::string header = header_text(tensors);
  std::array<std::byte, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<std::byte>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xFF);
  }
  bytes_ = length.size() + header.size();
  for (const SafetensorsItem& tensor : tensors) {
    begins_.push_back(bytes_);
    bytes_ += tensor.bytes;
  }
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file_ < 0) fail(errno);
  int error = write_at(file_, 0, length);
  if (error == 0) error = write_at(file_, length.size(), std::as_bytes(std::span(header)));
  if (error == 0 && ::ftruncate(file_, static_cast<off_t>(bytes_)) != 0) error = errno;
  if (error == 0) return;
  ::close(file_);
  fail(error);
}

SafetensorsWriter::~SafetensorsWriter() { ::close(file_); }

int SafetensorsWriter::write(std::size_t tensor, std::uint64_t offset,
                             std::span<const std::byte> part) const noexcept {
  return write_at(file_, begins_[tensor] + offset, part);
}

void SafetensorsWriter::fail(int error) const {
  throw Error(path_.string() + ": cannot write: " + std::generic_category().message(error));
}

}  // namespace openelm
