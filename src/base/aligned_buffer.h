#pragma once

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace openelm {

/// What kind of pages to ask the system for. Huge pages spare address translations where all of a
/// large buffer is read again and again; they commit 2 MiB at a touch.
enum class Pages { normal, huge };

/// Zero-filled memory straight from the system: page-aligned, committed when first touched (so the
/// thread that touches it owns it on NUMA machines).
class AlignedBuffer {
 public:
  AlignedBuffer() = default;

  /// Throws Error "out of memory: cannot reserve N MiB for `purpose`" when the system refuses.
  AlignedBuffer(std::size_t bytes, const char* purpose, Pages pages = Pages::normal);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An AlignedBuffer of numbers.
template <typename T>
class AlignedArray {
  static_assert(std::is_trivial_v<T>);

 public:
  AlignedArray() = default;
  AlignedArray(std::size_t count, const char* purpose)
      : buffer_(count * sizeof(T), purpose), count_(count) {}

  T* data() const noexcept { return reinterpret_cast<T*>(buffer_.data()); }
  std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t i) const noexcept { return data()[i]; }
  std::span<T> span() const noexcept { return {data(), count_}; }

 private:
  AlignedBuffer buffer_;
  std::size_t count_ = 0;
};

}  // namespace openelm
