#pragma once

#include <atomic>
#include <cstdint>

namespace openelm {

/// A counter that one thread advances and others wait for.
///
/// On CPUs of their own those who wait see the change soonest by spinning. On CPUs that they share,
/// with each other or with other programs, spinning keeps the very thread from running that they
/// wait for, and a phase of microseconds takes milliseconds. Which of the two it is can change at
/// any time, so waits learn from those before: each time that spinning was in vain, more of the
/// waits that follow begin by giving the CPU away. In the end all sleep.
class Signal {
 public:
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

  /// Adds 1. What was written before is visible to those who wait for it.
  void advance() noexcept;

  /// Returns when the count is no longer `seen`.
  void wait_past(std::uint32_t seen) noexcept;

 private:
  bool spin(std::uint32_t seen) noexcept;

  std::atomic<std::uint32_t> count_{0};
  std::atomic<int> sleepers_{0};
  // Shared by all who wait; when two change them at once, one change is lost, and no harm done.
  std::atomic<int> patient_waits_{0};  // to come, that do not spin
  std::atomic<int> patience_{0};       // as many of them after the next spinning in vain
};

}  // namespace openelm
