#include "runtime/model_fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/mapped_file.h"
#include "base/sha256.h"
#include "checkpoint/weight_files.h"

namespace openelm {
namespace {

// Enough to meet every large tensor of a model, little enough to be read at once from a cold disk.
constexpr std::size_t kSamples = 256;
constexpr std::size_t kSampleBytes = 4096;

/// Sizes go in front of what they measure, so that no two inputs read as the same stream.
void add_number(Sha256& hash, std::uint64_t number) {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(number >> (8 * i));
  }
  hash.update(bytes);
}

/// Bytes of a safetensors header with its length field; the file has been found valid.
std::size_t header_size(std::span<const std::byte> file) {
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  return static_cast<std::size_t>(length) + 8;
}

/// All of `data` when it is short, else blocks from its beginning to its end.
void add_samples(Sha256& hash, std::span<const std::byte> data) {
  if (data.size() <= kSamples * kSampleBytes) {
    hash.update(data);
    return;
  }
  const std::size_t last = data.size() - kSampleBytes;
  for (std::size_t i = 0; i < kSamples; ++i) {
    // Divided first: the product of the two could overflow where sizes have 32 bits.
    const std::size_t start =
        last / (kSamples - 1) * i + last % (kSamples - 1) * i / (kSamples - 1);
    hash.update(data.subspan(start, kSampleBytes));
  }
}

}  // namespace

std::string model_fingerprint(const std::filesystem::path& folder) {
  Sha256 hash;
  const MappedFile config(folder / "config.json");
  add_number(hash, config.bytes().size());
  hash.update(config.bytes());
  const WeightFiles weights = open_weight_files(folder);
  add_number(hash, weights.files.size());
  for (const auto& file : weights.files) {
    const std::span<const std::byte> bytes = file->bytes();
    const std::size_t header = header_size(bytes);
    add_number(hash, bytes.size());
    hash.update(bytes.first(header));
    add_samples(hash, bytes.subspan(header));
  }
  return hash.hex_digest();
}

}  // namespace openelm
