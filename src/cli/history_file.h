#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace openelm::cli {

/// $XDG_STATE_HOME/openelm/chat_history.jsonl, else below ~/.local/state; nothing when neither
/// variable is set.
std::optional<std::filesystem::path> history_path();

/// What was entered in earlier runs, oldest first: a file with a JSON text a line, which nobody but
/// its owner may read. Several programs may add to it at once. Never fails: a chat goes on without.
class HistoryFile {
 public:
  /// Nothing: no history is kept.
  explicit HistoryFile(std::optional<std::filesystem::path> file);

  const std::vector<std::string>& entries() const noexcept { return entries_; }

  /// Adds one, unless it repeats the newest.
  void add(const std::string& entry);

 private:
  std::optional<std::filesystem::path> file_;
  std::vector<std::string> entries_;
};

}  // namespace openelm::cli
