#include "parallel/thread_pool.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace openelm {
namespace {

TEST(Partition, CoversAllItemsOnceWithSizesThatDifferByAtMostOne) {
  for (const int parts : {1, 2, 3, 7, 64}) {
    for (const std::int64_t items : {0, 1, 6, 7, 72, 1000}) {
      std::int64_t next = 0;
      for (int i = 0; i < parts; ++i) {
        const Range r = partition(items, i, parts);
        EXPECT_EQ(r.begin, next);
        EXPECT_GE(r.size(), items / parts);
        EXPECT_LE(r.size(), items / parts + 1);
        next = r.end;
      }
      EXPECT_EQ(next, items);
    }
  }
}

TEST(ThreadPool, RunsTheBodyOnceOnEveryWorker) {
  for (const int n : {1, 2, 3, 8}) {
    ThreadPool pool(n);
    EXPECT_EQ(pool.size(), n);
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(n));
    for (int repeat = 0; repeat < 100; ++repeat) {
      pool.run([&](const Worker& w) noexcept {
        EXPECT_EQ(w.count(), n);
        ++calls[static_cast<std::size_t>(w.index())];
      });
    }
    for (const auto& c : calls) EXPECT_EQ(c.load(), 100);
  }
}

TEST(ThreadPool, BarrierMakesWritesOfAllWorkersVisible) {
  constexpr int kWorkers = 5;
  constexpr int kPhases = 2000;
  ThreadPool pool(kWorkers);
  std::vector<int> value(kWorkers, 0);  // plain ints: the barrier alone must order them
  std::atomic<int> wrong{0};
  pool.run([&](const Worker& w) noexcept {
    for (int phase = 1; phase <= kPhases; ++phase) {
      value[static_cast<std::size_t>(w.index())] = phase;
      w.barrier();
      for (const int v : value) wrong += v != phase;
      w.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pool.run([&](const Worker& w) noexcept {
      // One late worker: the others sleep in the barrier.
      if (w.index() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      w.barrier();
      ++calls;
    });
  }
  EXPECT_EQ(calls.load(), 9);
}

TEST(ThreadPool, ManyMoreWorkersThanCpusKeepInStep) {
  constexpr int kWorkers = 24;
  ThreadPool pool(kWorkers);
  std::atomic<int> arrived{0};
  std::atomic<int> wrong{0};
  // Long enough for the waiting to learn that spinning is in vain.
  pool.run([&](const Worker& w) noexcept {
    for (int phase = 1; phase <= 500; ++phase) {
      ++arrived;
      w.barrier();
      wrong += arrived.load() != phase * kWorkers;
      w.barrier();
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(2);
  int inside = 0;
  std::atomic<int> overlaps{0};
  const auto caller = [&] {
    for (int i = 0; i < 200; ++i) {
      pool.run([&](const Worker& w) noexcept {
        if (w.index() == 0) overlaps += ++inside != 1;
        w.barrier();
        if (w.index() == 0) --inside;
      });
    }
  };
  std::thread other(caller);
  caller();
  other.join();
  EXPECT_EQ(overlaps.load(), 0);
}

}  // namespace
}  // namespace openelm
