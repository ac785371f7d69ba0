#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <vector>

#include <unistd.h>

#include "base/aligned_buffer.h"
#include "parallel/partition.h"
#include "runtime/benchmark.h"

namespace openelm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMinBytes = std::size_t{512} << 20;
constexpr int kRounds = 5;
constexpr std::int64_t kStreams = 4;     // places read at once, as the kernels read four tiles
constexpr std::int64_t kLine = 8;        // numbers in a cache line
constexpr std::int64_t kAhead = 16 * 8;  // prefetch distance: what a core's own prefetcher misses

/// Large enough that the last-level cache can hold only a small part.
std::size_t probe_bytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0) return std::max(kMinBytes, 4 * static_cast<std::size_t>(cache));
#endif
  return kMinBytes;
}

/// Reads a range the way the decode kernels read weights. What does not divide is left out.
std::uint64_t sum(const std::uint64_t* values, Range range) {
  const std::int64_t stream = range.size() / kStreams / kLine * kLine;
  std::array<std::uint64_t, kLine> sums{};
  for (std::int64_t i = 0; i < stream; i += kLine) {
    for (std::int64_t s = 0; s < kStreams; ++s) {
      const std::uint64_t* line = values + range.begin + s * stream + i;
      __builtin_prefetch(line + kAhead);
      for (std::int64_t lane = 0; lane < kLine; ++lane) {
        sums[static_cast<std::size_t>(lane)] += line[lane];
      }
    }
  }
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

}  // namespace

double measure_read_bandwidth(int threads) {
  const AlignedBuffer buffer(probe_bytes(), "the bandwidth probe", Pages::huge);
  auto* const values = reinterpret_cast<std::uint64_t*>(buffer.data());
  const auto count = static_cast<std::int64_t>(buffer.size() / sizeof(std::uint64_t));
  std::barrier<> round(threads);
  std::vector<std::uint64_t> totals(static_cast<std::size_t>(threads));
  double best = 0;
  const auto work = [&](int index) {
    const Range mine = partition(count, index, threads);
    // Each thread touches its own part first, which makes the pages real and, on a machine of
    // several memory nodes, local.
    std::fill(values + mine.begin, values + mine.end, std::uint64_t{1});
    for (int r = 0; r < kRounds; ++r) {
      round.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      totals[static_cast<std::size_t>(index)] += sum(values, mine);
      round.arrive_and_wait();
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      if (index == 0) {
        best = std::max(best, static_cast<double>(buffer.size()) / elapsed.count());
      }
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  others.clear();
  // The sums are of use to nobody, but a compiler must not drop the reads behind them.
  const bool read_all = std::all_of(totals.begin(), totals.end(), [](auto t) { return t > 0; });
  return read_all ? best : 0;
}

}  // namespace openelm
