#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace openelm::test {

/// An array whose last element is followed by a page that must not be touched, so that a read or
/// write past the end ends the test, and which is preceded by bytes whose change `intact` notices.
/// Elements are 64-byte aligned where the array's size in bytes is a multiple of 64.
template <typename T>
class GuardedArray {
 public:
  explicit GuardedArray(std::size_t count) : count_(count) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    usable_ = (count * sizeof(T) + kLead + page - 1) / page * page;
    mapped_ = usable_ + page;
    void* memory =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<std::byte*>(memory);
    mprotect(base_ + usable_, page, PROT_NONE);
    std::memset(base_, kCanary, usable_);
  }
  ~GuardedArray() {
    if (base_ != nullptr) munmap(base_, mapped_);
  }
  GuardedArray(GuardedArray&& other) noexcept
      : count_(other.count_),
        usable_(other.usable_),
        mapped_(other.mapped_),
        base_(std::exchange(other.base_, nullptr)) {}
  GuardedArray& operator=(GuardedArray&&) = delete;

  T* data() const { return reinterpret_cast<T*>(base_ + usable_ - count_ * sizeof(T)); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }
  std::span<T> span() const { return {data(), count_}; }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }

  bool intact() const {
    for (const std::byte* p = base_; p < reinterpret_cast<std::byte*>(data()); ++p) {
      if (*p != std::byte{kCanary}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t kLead = 256;
  static constexpr unsigned char kCanary = 0xA5;

  std::size_t count_;
  std::size_t usable_ = 0;
  std::size_t mapped_ = 0;
  std::byte* base_ = nullptr;
};

}  // namespace openelm::test
