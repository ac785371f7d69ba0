#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include <openelm/batch.h>

#include "cli/batch_input.h"
#include "cli/progress.h"

namespace openelm::cli {

/// How a batch went, records that never reached the model included.
struct BatchSummary {
  std::uint64_t records = 0;  ///< of this run
  std::uint64_t failed = 0;
  std::uint64_t resumed = 0;  ///< that were there before
  double seconds = 0;
  std::uint64_t seed = 0;
  bool complete = false;  ///< all records of the input are done
  BatchStatistics statistics;
};

nlohmann::ordered_json summary_json(const BatchSummary& summary);

/// The same for people, in a few lines.
std::string summary_text(const BatchSummary& summary);

/// The line that tells how far a batch has come: records, speed, time left.
class BatchProgress {
 public:
  /// Counts the records of `input` first, if there is anybody to be told.
  BatchProgress(bool quiet, const BatchInput& input);

  void show(std::uint64_t done, const BatchStatistics& statistics);

 private:
  using Clock = std::chrono::steady_clock;

  Progress progress_;
  std::optional<std::uint64_t> total_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace openelm::cli
