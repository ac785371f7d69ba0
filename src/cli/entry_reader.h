#pragma once

#include <atomic>
#include <string>

#include "cli/line_reader.h"

namespace openelm::cli {

/// Where a chat's entries come from, one after the other.
class EntryReader {
 public:
  enum class Result { entry, end, interrupted };

  virtual ~EntryReader() = default;

  /// Waits for the next entry. `proposal`: what stands there to be changed, where the user can.
  /// `interrupt` is the flag that the signal handler sets.
  virtual Result read(std::string& entry, const std::string& proposal,
                      const std::atomic<bool>& interrupt) = 0;

  /// Lines read so far.
  virtual std::size_t line_count() const { return 0; }

  /// Proposals are shown.
  virtual bool can_propose() const { return false; }
};

/// Every line is an entry.
class PipeReader final : public EntryReader {
 public:
  Result read(std::string& entry, const std::string& proposal,
              const std::atomic<bool>& interrupt) override;
  std::size_t line_count() const override { return lines_.count(); }

 private:
  LineReader lines_;
};

/// Lines from a terminal that knows no cursor keys (TERM=dumb, or stderr is elsewhere), as the
/// terminal itself edits them. An entry may take several.
class PlainTerminalReader final : public EntryReader {
 public:
  Result read(std::string& entry, const std::string& proposal,
              const std::atomic<bool>& interrupt) override;

 private:
  LineReader lines_;
};

}  // namespace openelm::cli
