#include "cli/chat_commands.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <spdlog/fmt/fmt.h>

#include <openelm/error.h>

#include "cli/answer_printer.h"
#include "cli/generation_settings.h"

namespace openelm::cli {
namespace {

namespace fs = std::filesystem;

enum class Takes { nothing, something, maybe };

struct Entry {
  std::string_view name;
  ChatCommand command;
  Takes takes;
  std::string_view argument;
  std::string_view help;
};

constexpr std::array kCommands{
    Entry{"/help", ChatCommand::help, Takes::nothing, "", "show this"},
    Entry{"/reset", ChatCommand::reset, Takes::nothing, "",
          "forget the conversation, not the system text"},
    Entry{"/undo", ChatCommand::undo, Takes::nothing, "", "take the last message and answer back"},
    Entry{"/retry", ChatCommand::retry, Takes::nothing, "",
          "answer the last message again, with the next seed"},
    Entry{"/edit", ChatCommand::edit, Takes::maybe, "[TEXT]",
          "change the last message, and answer that"},
    Entry{"/system", ChatCommand::system, Takes::maybe, "[TEXT]",
          "show or change the system text; - removes it"},
    Entry{"/save", ChatCommand::save, Takes::something, "FILE", "write the conversation, as JSON"},
    Entry{"/load", ChatCommand::load, Takes::something, "FILE", "go on from a saved conversation"},
    Entry{"/set", ChatCommand::set, Takes::maybe, "[NAME VALUE]",
          "show or change how it is answered"},
    Entry{"/stats", ChatCommand::stats, Takes::nothing, "", "tokens, context used and speed"},
    Entry{"/tokens", ChatCommand::tokens, Takes::maybe, "[TEXT]",
          "show the tokens of the conversation, or of a text"},
    Entry{"/quit", ChatCommand::quit, Takes::nothing, "", "leave (or Ctrl-D)"},
};

/// Files that begin as `typed` does; folders end with a slash.
std::vector<std::string> matching_files(std::string_view typed) {
  const std::size_t slash = typed.rfind('/');
  const std::string folder(typed.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
  const std::string start(typed.substr(folder.size()));
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(folder.empty() ? "." : folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    const bool hidden = name.starts_with('.') && !start.starts_with('.');
    if (!name.starts_with(start) || hidden) continue;
    std::error_code ignored;
    files.push_back(folder + name + (entry->is_directory(ignored) ? "/" : ""));
  }
  std::ranges::sort(files);
  return files;
}

template <typename Names, typename Project>
std::vector<std::string> matching(const Names& names, std::string_view typed, Project project) {
  std::vector<std::string> found;
  for (const auto& entry : names) {
    const std::string name(project(entry));
    if (name.starts_with(typed)) found.push_back(name);
  }
  return found;
}

}  // namespace

ChatCommandCall parse_chat_command(std::string_view line) {
  line = trim(line);
  const std::size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string name(line.substr(0, end));
  const std::string argument(trim(line.substr(end)));
  const auto* entry = std::ranges::find(kCommands, name, &Entry::name);
  if (entry == kCommands.end()) {
    throw UsageError("no command " + name +
                     ": /help lists them; put a space in front to send a message that begins with "
                     "a slash");
  }
  if (entry->takes == Takes::nothing && !argument.empty()) {
    throw UsageError(name + " takes nothing after it, got '" + argument + "'");
  }
  if (entry->takes == Takes::something && argument.empty()) {
    throw UsageError(name + " needs " + std::string(entry->argument) + " after it");
  }
  return {entry->command, argument};
}

std::string chat_help() {
  std::string text;
  for (const Entry& entry : kCommands) {
    text += fmt::format("{:<20}{}\n", fmt::format("{} {}", entry.name, entry.argument), entry.help);
  }
  return text +
         "Ctrl-C stops an answer. Alt-Enter, a \\ at a line's end, and a block between two \"\"\" "
         "go\n"
         "on to the next line; a paste is one message. Ctrl-R searches the history.\n";
}

Completions complete_chat_command(std::string_view text) {
  if (!text.starts_with('/')) return {};
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos) {
    return {0, matching(kCommands, text, [](const Entry& entry) { return entry.name; })};
  }
  const std::string_view name = text.substr(0, blank);
  const std::size_t begin = blank + 1;
  if (name == "/save" || name == "/load") return {begin, matching_files(text.substr(begin))};
  if (name == "/set") {
    return {begin, matching(settings_of({}), text.substr(begin),
                            [](const Setting& setting) { return setting.name; })};
  }
  return {};
}

}  // namespace openelm::cli
