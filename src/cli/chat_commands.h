#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/line_editor.h"

namespace openelm::cli {

/// What a user can tell a chat besides messages.
enum class ChatCommand {
  help,
  reset,
  undo,
  retry,
  edit,
  system,
  save,
  load,
  set,
  stats,
  tokens,
  quit
};

struct ChatCommandCall {
  ChatCommand command;
  std::string argument;  ///< without the white space around it
};

/// Takes a line that begins with a slash apart. Throws UsageError, which tells what to do, when
/// there is no such command, or an argument where there should be none or none where there should
/// be one.
ChatCommandCall parse_chat_command(std::string_view line);

/// A line for each command and key.
std::string chat_help();

/// Commands, names of settings, and files, at the end of `text`.
Completions complete_chat_command(std::string_view text);

}  // namespace openelm::cli
