#include "parallel/thread_pool.h"

#include <string>
#include <system_error>

#include <openelm/error.h>

namespace openelm {
void Barrier::arrive_and_wait() noexcept {
  const std::uint32_t generation = all_arrived_.count();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == n_workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    all_arrived_.advance();
  } else {
    all_arrived_.wait_past(generation);
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
  started_.advance();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_job(Job job) {
  const std::lock_guard lock(turn_);
  job_ = job;
  started_.advance();
  const Worker worker(0, n_threads_, barrier_);
  job.call(job.body, worker);
  worker.barrier();
}

void ThreadPool::work(int index) noexcept {
  const Worker worker(index, n_threads_, barrier_);
  std::uint32_t seen = 0;
  while (true) {
    started_.wait_past(seen);
    ++seen;
    if (stopping_) return;
    job_.call(job_.body, worker);
    worker.barrier();
  }
}

}  // namespace openelm
