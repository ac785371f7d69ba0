#include "cli/history_file.h"

#include <cstdlib>
#include <fstream>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openelm/error.h>

#include "base/atomic_file.h"

namespace openelm::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kEntries = 1000;
constexpr mode_t kPrivate = 0600;
constexpr mode_t kPrivateFolder = 0700;

std::optional<fs::path> absolute_from(const char* variable) {
  const char* value = std::getenv(variable);
  // The XDG specification has relative paths ignored.
  if (value == nullptr || !fs::path(value).is_absolute()) return std::nullopt;
  return value;
}

std::string to_line(const std::string& entry) { return nlohmann::json(entry).dump() + "\n"; }

std::vector<std::string> read_lines(const fs::path& file) {
  std::vector<std::string> entries;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (entry.is_string()) entries.push_back(entry.get<std::string>());
  }
  return entries;
}

/// Makes the folder, which only its owner may enter.
void make_folder(const fs::path& folder) {
  std::error_code ignored;
  if (fs::exists(folder, ignored)) return;
  fs::create_directories(folder.parent_path(), ignored);
  ::mkdir(folder.c_str(), kPrivateFolder);
}

bool append(const fs::path& file, const std::string& line) {
  const int out = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, kPrivate);
  if (out < 0) return false;
  const bool whole = ::write(out, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  return ::close(out) == 0 && whole;
}

}  // namespace

std::optional<fs::path> history_path() {
  std::optional<fs::path> state = absolute_from("XDG_STATE_HOME");
  if (!state) {
    const std::optional<fs::path> home = absolute_from("HOME");
    if (!home) return std::nullopt;
    state = *home / ".local" / "state";
  }
  return *state / "openelm" / "chat_history.jsonl";
}

HistoryFile::HistoryFile(std::optional<fs::path> file) : file_(std::move(file)) {
  if (!file_) return;
  make_folder(file_->parent_path());
  std::error_code ignored;
  if (!fs::exists(*file_, ignored)) return;
  fs::permissions(*file_, fs::perms::owner_read | fs::perms::owner_write, ignored);
  entries_ = read_lines(*file_);
  if (entries_.size() < 2 * kEntries) return;
  entries_.erase(entries_.begin(), entries_.end() - static_cast<std::ptrdiff_t>(kEntries));
  std::string text;
  for (const std::string& entry : entries_) text += to_line(entry);
  try {
    write_file_atomically(*file_, text, kPrivate);
  } catch (const Error& error) {
    spdlog::debug("the history was not shortened: {}", error.what());
  }
}

void HistoryFile::add(const std::string& entry) {
  if (!entries_.empty() && entries_.back() == entry) return;
  entries_.push_back(entry);
  if (!file_ || append(*file_, to_line(entry))) return;
  spdlog::warn("{}: cannot write the history; this run goes on without", file_->string());
  file_.reset();
}

}  // namespace openelm::cli
