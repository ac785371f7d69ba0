#include "cli/chat_template.h"

#include <fstream>

#include <nlohmann/json.hpp>

#include <openelm/error.h>

namespace openelm::cli {
namespace {

// A base model hardly ever ends by itself, so its answers are cut at a readable length.
const ChatTemplate kNone{.name = "none",
                         .before_user = "",
                         .after_user = "",
                         .between_turns = "\n",
                         .stop = {},
                         .eos_after_answer = false,
                         .trims_answer = false,
                         .max_tokens = 128};

const ChatTemplate kUserAssistant{.name = "user-assistant",
                                  .before_user = "User: ",
                                  .after_user = "\nAssistant:",
                                  .between_turns = "\n",
                                  .stop = {"\nUser:"},
                                  .eos_after_answer = true,
                                  .trims_answer = true,
                                  .max_tokens = -1};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

const ChatTemplate& find_chat_template(std::string_view name) {
  for (const ChatTemplate* known : {&kNone, &kUserAssistant}) {
    if (name == known->name) return *known;
  }
  throw UsageError("--template: '" + std::string(name) +
                   "' is not known in this version: none or user-assistant");
}

const ChatTemplate& detect_chat_template(const std::filesystem::path& model) {
  std::ifstream file(model / "tokenizer_config.json");
  const auto config = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return kNone;
  const auto found = config.find("chat_template");
  if (found == config.end() || !found->is_string()) return kNone;
  const auto& text = found->get_ref<const std::string&>();
  // In Jinja's string the line end is mostly written as an escape.
  const bool answers = contains(text, "\\nAssistant:") || contains(text, "\nAssistant:");
  return contains(text, "User: ") && answers ? kUserAssistant : kNone;
}

}  // namespace openelm::cli
