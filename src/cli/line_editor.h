#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/entry_reader.h"
#include "cli/history_file.h"
#include "cli/terminal_modes.h"

namespace openelm::cli {

/// What may stand in the place of the text from `begin` on.
struct Completions {
  std::size_t begin = 0;
  std::vector<std::string> candidates;
};

/// Completions at the end of a text; none: a tab is a tab.
using Complete = std::function<Completions(std::string_view text)>;

/// Entries that the user edits on the terminal, by way of libedit: cursor keys, words, history and
/// search, several lines, text pasted as a whole. Characters are edited whole in every locale.
class LineEditor final : public EntryReader {
 public:
  /// Nothing when the terminal cannot do it: no TERM or a dumb one, stderr is no terminal, or the
  /// system knows no UTF-8 locale.
  static std::unique_ptr<LineEditor> open(TerminalModes& modes, HistoryFile history,
                                          Complete complete);
  ~LineEditor() override;

  Result read(std::string& entry, const std::string& proposal,
              const std::atomic<bool>& interrupt) override;
  bool can_propose() const override { return true; }

 private:
  struct Impl;
  explicit LineEditor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace openelm::cli
