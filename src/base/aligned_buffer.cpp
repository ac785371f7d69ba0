#include "base/aligned_buffer.h"

#include <cstdint>
#include <string>

#include <sys/mman.h>

#include <openelm/error.h>

namespace openelm {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes, const char* purpose, Pages pages) {
  if (bytes == 0) return;
  const bool large = pages == Pages::huge && bytes >= kHugePage;
  // Huge pages need memory that begins on their boundary: reserve one more and give the ends back.
  const std::size_t reserved = large ? bytes + kHugePage : bytes;
  void* const mapped = reserved < bytes
                           ? MAP_FAILED
                           : ::mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    throw Error("out of memory: cannot reserve " + std::to_string((bytes >> 20) + 1) + " MiB for " +
                purpose);
  }
  auto* begin = static_cast<std::byte*>(mapped);
  if (large) {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    const std::size_t skip = (kHugePage - address % kHugePage) % kHugePage;
    constexpr std::size_t page = 4096;
    if (skip != 0) ::munmap(begin, skip);
    const std::size_t used = (bytes + page - 1) / page * page;
    if (used < reserved - skip) ::munmap(begin + skip + used, reserved - skip - used);
    begin += skip;
#ifdef MADV_HUGEPAGE
    ::madvise(begin, bytes, MADV_HUGEPAGE);
#endif
  }
  data_ = begin;
  size_ = bytes;
}

AlignedBuffer::~AlignedBuffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace openelm
