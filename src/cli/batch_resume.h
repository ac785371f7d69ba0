#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "cli/batch_record.h"

namespace openelm::cli {

/// The records that an output file holds already.
class FinishedRecords {
 public:
  FinishedRecords() = default;

  /// Reads the whole lines of `file`. Throws Error at one that is not a record of an output.
  explicit FinishedRecords(const std::filesystem::path& file);

  /// Whether the record is there. Throws Error when another one, by its id, has its index: the
  /// input is not the one the output was made from.
  bool contains(const BatchRecord& record) const;

  std::uint64_t count() const noexcept { return ids_.size(); }
  std::uint64_t failed() const noexcept { return failed_; }
  /// Bytes of the file that are whole lines; what comes after was cut off while it was written.
  std::uint64_t whole_bytes() const noexcept { return whole_bytes_; }

 private:
  std::string name_;
  std::unordered_map<std::uint64_t, std::size_t> ids_;  // hash of the id, by index
  std::uint64_t failed_ = 0;
  std::uint64_t whole_bytes_ = 0;
};

/// What a run's results depend on, kept beside its output so that only the same run goes on.
struct RunHeader {
  nlohmann::ordered_json settings;  ///< one entry for each
  std::uint64_t seed = 0;
};

/// Where it is kept: the output's name with ".run.json" behind it.
std::filesystem::path run_header_path(const std::filesystem::path& output);

void write_run_header(const std::filesystem::path& output, const RunHeader& header);

/// Takes over the seed of an earlier run, unless `seed` says which it should have been. Throws
/// Error, naming the setting, when the earlier run was another one.
void continue_run(const std::filesystem::path& output, std::optional<std::uint64_t> seed,
                  RunHeader& header);

}  // namespace openelm::cli
