#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <thread>

#include <unistd.h>

#include "base/aligned_buffer.h"
#include "parallel/partition.h"
#include "runtime/benchmark.h"

namespace openelm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMinBytes = std::size_t{512} << 20;
constexpr int kRounds = 5;
constexpr std::size_t kStreams =
    16;  // independent sums, so that loads and not additions set the pace

/// Large enough that the last-level cache can hold only a small part.
std::size_t probe_bytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0) return std::max(kMinBytes, 4 * static_cast<std::size_t>(cache));
#endif
  return kMinBytes;
}

std::uint64_t sum(const std::uint64_t* values, Range range) {
  std::array<std::uint64_t, kStreams> sums{};
  std::int64_t i = range.begin;
  for (; i + static_cast<std::int64_t>(kStreams) <= range.end;
       i += static_cast<std::int64_t>(kStreams)) {
    for (std::size_t s = 0; s < kStreams; ++s) {
      sums[s] += values[i + static_cast<std::int64_t>(s)];
    }
  }
  std::uint64_t total = 0;
  for (; i < range.end; ++i) total += values[i];
  for (const std::uint64_t part : sums) total += part;
  return total;
}

}  // namespace

double measure_read_bandwidth(int threads) {
  const AlignedArray<std::uint64_t> buffer(probe_bytes() / sizeof(std::uint64_t),
                                           "the bandwidth probe");
  const auto count = static_cast<std::int64_t>(buffer.size());
  std::barrier<> round(threads);
  std::vector<std::uint64_t> totals(static_cast<std::size_t>(threads));
  double best = 0;
  const auto work = [&](int index) {
    const Range mine = partition(count, index, threads);
    // Each thread touches its own part first, which makes the pages real and, on a machine of
    // several memory nodes, local.
    std::fill(buffer.data() + mine.begin, buffer.data() + mine.end, 1U);
    for (int r = 0; r < kRounds; ++r) {
      round.arrive_and_wait();
      const Clock::time_point start = Clock::now();
      totals[static_cast<std::size_t>(index)] += sum(buffer.data(), mine);
      round.arrive_and_wait();
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      if (index == 0) {
        best = std::max(
            best, static_cast<double>(buffer.size() * sizeof(std::uint64_t)) / elapsed.count());
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
