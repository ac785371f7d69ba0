#include "parallel/thread_pool.h"

#include <string>
#include <system_error>

#include <openelm/error.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace openelm {
namespace {

void pause() noexcept {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Waits until `value` is no longer `old`.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old,
                     std::atomic<int>& sleepers) noexcept {
  // 20 to 100 us depending on the CPU's pause: longer than a balanced phase's imbalance, shorter
  // than a scheduler's time slice.
  constexpr int kSpins = 2000;
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  sleepers.fetch_add(1);
  while (value.load() == old) value.wait(old);
  sleepers.fetch_sub(1);
}

/// Changes `value` and wakes those who sleep on it. Both sides use sequentially consistent order on
/// value and sleepers, so a sleeper is either counted here or sees the new value.
void change(std::atomic<std::uint32_t>& value, const std::atomic<int>& sleepers) noexcept {
  value.fetch_add(1);
  if (sleepers.load() != 0) value.notify_all();
}

}  // namespace

void Barrier::arrive_and_wait() noexcept {
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    change(generation_, sleepers_);
  } else {
    wait_for_change(generation_, generation, sleepers_);
  }
}

ThreadPool::ThreadPool(int n_threads) : n_threads_(n_threads), barrier_(n_threads) {
  threads_.reserve(static_cast<std::size_t>(n_threads - 1));
  try {
    for (int i = 1; i < n_threads; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (const std::system_error& e) {
    stop();
    throw Error("cannot start " + std::to_string(n_threads) + " threads: " + e.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() noexcept {
  stopping_ = true;
  change(started_, sleepers_);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_job(Job job) {
  const std::lock_guard lock(turn_);
  job_ = job;
  change(started_, sleepers_);
  const Worker worker(0, n_threads_, barrier_);
  job.call(job.body, worker);
  worker.barrier();
}

void ThreadPool::work(int index) noexcept {
  const Worker worker(index, n_threads_, barrier_);
  std::uint32_t seen = 0;
  while (true) {
    wait_for_change(started_, seen, sleepers_);
    ++seen;
    if (stopping_) return;
    job_.call(job_.body, worker);
    worker.barrier();
  }
}

}  // namespace openelm
