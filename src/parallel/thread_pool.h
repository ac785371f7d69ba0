#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "parallel/partition.h"
#include "parallel/signal.h"

namespace openelm {

/// A point that all workers reach before any goes on.
class Barrier {
 public:
  explicit Barrier(int n_workers) noexcept : n_workers_(n_workers) {}
  void arrive_and_wait() noexcept;

 private:
  int n_workers_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) Signal all_arrived_;
};

/// One thread's view of a parallel region.
class Worker {
 public:
  Worker(int index, int count, Barrier& barrier) noexcept
      : index_(index), count_(count), barrier_(&barrier) {}

  int index() const noexcept { return index_; }
  int count() const noexcept { return count_; }
  void barrier() const noexcept {
    if (count_ > 1) barrier_->arrive_and_wait();
  }
  /// This worker's contiguous share of `n_items`.
  Range share(std::int64_t n_items) const noexcept { return partition(n_items, index_, count_); }

 private:
  int index_;
  int count_;
  Barrier* barrier_;
};

/// Threads that run the same function together: one parallel region for a whole forward pass. The
/// calling thread is worker 0.
class ThreadPool {
 public:
  /// `n_threads` >= 1. Throws Error when the system does not give the threads.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept { return n_threads_; }

  /// Calls `body(worker)` on every thread and returns when all are done. Callers on different
  /// threads take turns. The body must not throw.
  template <typename Body>
  void run(Body&& body) {
    using Function = std::remove_reference_t<Body>;
    run_job({[](void* f, const Worker& w) noexcept { (*static_cast<Function*>(f))(w); }, &body});
  }

 private:
  struct Job {
    void (*call)(void*, const Worker&) noexcept = nullptr;
    void* body = nullptr;
  };
  void run_job(Job job);
  void work(int index) noexcept;
  void stop() noexcept;

  int n_threads_;
  std::mutex turn_;
  Job job_;
  bool stopping_ = false;
  alignas(64) Signal started_;
  Barrier barrier_;
  std::vector<std::thread> threads_;
};

}  // namespace openelm
