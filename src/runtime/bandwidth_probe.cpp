#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include <unistd.h>

#include "base/aligned_buffer.h"
#include "runtime/benchmark.h"
#include "runtime/engine_impl.h"

namespace openelm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLargeSet = std::uint64_t{512} << 20;
constexpr int kRounds = 5;
constexpr std::int64_t kStreams = 4;     // places read at once, as the kernels read four tiles
constexpr std::int64_t kLine = 8;        // numbers in a cache line
constexpr std::int64_t kAhead = 16 * 8;  // prefetch distance: what a core's own prefetcher misses

/// A set so large that the last-level cache can hold only a small part of it.
std::uint64_t beyond_the_caches() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long cache = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (cache > 0) return std::max(kLargeSet, 4 * static_cast<std::uint64_t>(cache));
#endif
  return kLargeSet;
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

ReadBandwidth measure_read_bandwidth(const Engine& engine, std::uint64_t bytes_per_token) {
  const std::uint64_t bytes = std::min(bytes_per_token, beyond_the_caches());
  const AlignedBuffer buffer(bytes, "the bandwidth probe", Pages::huge);
  auto* const values = reinterpret_cast<std::uint64_t*>(buffer.data());
  const auto lines = static_cast<std::int64_t>(bytes / sizeof(std::uint64_t)) / kLine;
  // A round over a small set alone would be too short to time.
  const std::uint64_t passes = std::max<std::uint64_t>(1, kLargeSet / bytes);
  struct Part {
    std::uint64_t sum = 0;
    Clock::time_point begin;
    Clock::time_point end;
  };
  std::vector<Part> parts(static_cast<std::size_t>(engine.threads()));
  Clock::duration best = Clock::duration::max();
  engine.impl().pool.run([&](const Worker& worker) {
    const Range mine = worker.share(lines);
    const Range numbers = {mine.begin * kLine, mine.end * kLine};
    // Each thread touches its own part first, which makes the pages real and, on a machine of
    // several memory nodes, local.
    std::fill(values + numbers.begin, values + numbers.end, std::uint64_t{1});
    Part& part = parts[static_cast<std::size_t>(worker.index())];
    for (int r = 0; r < kRounds; ++r) {
      worker.barrier();
      part.begin = Clock::now();
      for (std::uint64_t pass = 0; pass < passes; ++pass) part.sum += sum(values, numbers);
      part.end = Clock::now();
      worker.barrier();
      if (worker.index() != 0) continue;
      // From the first one's beginning to the last one's end: with fewer CPUs than threads, one
      // thread may have finished before another is let run.
      const auto first =
          std::min_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            return a.begin < b.begin;
          })->begin;
      const auto last =
          std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
            return a.end < b.end;
          })->end;
      best = std::min(best, last - first);
    }
  });
  // The sums are of use to nobody, but a compiler must not drop the reads behind them.
  const bool read =
      std::any_of(parts.begin(), parts.end(), [](const Part& p) { return p.sum > 0; });
  const double seconds = std::chrono::duration<double>(best).count();
  return {bytes, read ? static_cast<double>(passes * bytes) / seconds : 0};
}

}  // namespace openelm
