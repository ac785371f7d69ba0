#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace openelm::cli {

/// How turns are written down for a model.
struct ChatTemplate {
  std::string_view name;
  std::string_view before_user;
  std::string_view after_user;
  std::string_view between_turns;  ///< also between the system text and the first turn
  std::vector<std::string> stop;   ///< where an answer ends that went on to write the user's part
  bool eos_after_answer;           ///< an answer that ended by itself keeps its EOS in the history
  bool trims_answer;               ///< white space around an answer is not part of it
  std::int32_t max_tokens;         ///< of an answer unless asked otherwise; -1: until it ends
};

/// "none" (plain continuation) or "user-assistant". Throws UsageError for other names.
const ChatTemplate& find_chat_template(std::string_view name);

/// The template that the folder's tokenizer_config.json asks for, as far as it is known; else none.
const ChatTemplate& detect_chat_template(const std::filesystem::path& model);

}  // namespace openelm::cli
