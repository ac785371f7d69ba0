#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace openelm {

/// SHA-256 of a stream of bytes (FIPS 180-4).
class Sha256 {
 public:
  void update(std::span<const std::byte> bytes) noexcept;

  /// Ends the stream; 64 lower-case hexadecimal digits.
  std::string hex_digest();

 private:
  void compress(const std::byte* block) noexcept;

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace openelm
