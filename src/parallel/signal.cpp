#include "parallel/signal.h"

#include <algorithm>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace openelm {
namespace {

// 20 to 100 us depending on the CPU's pause: longer than a balanced phase's imbalance, shorter than
// a scheduler's time slice.
constexpr int kSpins = 2000;
// Some 10 us where no other thread is ready to run.
constexpr int kYields = 20;
// Then spinning in vain takes no more than a tenth of a microsecond a wait, and it is tried again
// after some milliseconds.
constexpr int kMostPatience = 1023;

constexpr auto relaxed = std::memory_order_relaxed;

void pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace

/// Both sides use sequentially consistent order on the count and the sleepers, so a sleeper is
/// either counted here or sees the new count.
void Signal::advance() noexcept {
  count_.fetch_add(1);
  if (sleepers_.load() != 0) count_.notify_all();
}

bool Signal::spin(std::uint32_t seen) noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (count_.load(std::memory_order_acquire) != seen) return true;
    pause();
  }
  return false;
}

void Signal::wait_past(std::uint32_t seen) noexcept {
  const int patient_waits = patient_waits_.load(relaxed);
  const int patience = patience_.load(relaxed);
  if (patient_waits > 0) {
    patient_waits_.store(patient_waits - 1, relaxed);
  } else if (spin(seen)) {
    if (patience > 0) patience_.store(patience / 2, relaxed);
    return;
  } else {
    const int more = std::min(2 * patience + 1, kMostPatience);
    patience_.store(more, relaxed);
    patient_waits_.store(more, relaxed);
  }
  for (int i = 0; i < kYields; ++i) {
    if (count_.load(std::memory_order_acquire) != seen) return;
    std::this_thread::yield();
  }
  sleepers_.fetch_add(1);
  while (count_.load() == seen) count_.wait(seen);
  sleepers_.fetch_sub(1);
}

}  // namespace openelm
