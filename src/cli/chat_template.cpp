#include "cli/chat_template.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "base/utf8.h"
#include "checkpoint/json_text.h"
#include "cli/input_text.h"

namespace openelm::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSystem = "{{system}}";
constexpr std::string_view kUser = "{{user}}";
constexpr std::string_view kAssistant = "{{assistant}}";

// A base model hardly ever ends by itself, so its answers are cut at a readable length.
constexpr std::int32_t kContinuationTokens = 128;

/// The known templates, in the language of the files. `system`: the part that stands once.
struct BuiltIn {
  std::string_view name;
  std::string_view system;
  std::string_view turn;
};
constexpr std::array kBuiltIn{
    BuiltIn{"none", "{{system}}\n", "{{user}}{{assistant}}\n"},
    BuiltIn{"user-assistant", "{{system}}\n", "User: {{user}}\nAssistant:{{assistant}}{{eos}}\n"},
    BuiltIn{"zephyr", "<|system|>\n{{system}}{{eos}}\n",
            "<|user|>\n{{user}}{{eos}}\n<|assistant|>\n{{assistant}}{{eos}}\n"},
    BuiltIn{"alpaca", "{{system}}\n\n",
            "### Instruction:\n{{user}}\n\n### Response:\n{{assistant}}{{eos}}\n\n"},
    BuiltIn{"llama2", "[INST] <<SYS>>\n{{system}}\n<</SYS>>\n\n",
            "[INST] {{user}} [/INST]{{assistant}} {{eos}}{{bos}}"},
    BuiltIn{
        "chatml", "<|im_start|>system\n{{system}}<|im_end|>\n",
        "<|im_start|>user\n{{user}}<|im_end|>\n<|im_start|>assistant\n{{assistant}}<|im_end|>\n"},
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Splits text at the marks of control tokens.
TemplateText to_pieces(std::string_view text) {
  struct Mark {
    std::string_view spelling;
    TemplatePiece::Kind kind;
  };
  constexpr std::array marks{Mark{"{{bos}}", TemplatePiece::Kind::bos},
                             Mark{"{{eos}}", TemplatePiece::Kind::eos}};
  TemplateText pieces;
  while (!text.empty()) {
    std::size_t end = text.size();
    const Mark* found = nullptr;
    for (const Mark& mark : marks) {
      const std::size_t at = text.find(mark.spelling);
      if (at < end) {
        end = at;
        found = &mark;
      }
    }
    if (end > 0) pieces.push_back({.text = std::string(text.substr(0, end))});
    if (found == nullptr) break;
    pieces.push_back({.kind = found->kind});
    text.remove_prefix(end + found->spelling.size());
  }
  return pieces;
}

/// Where the user's next part begins: line ends, and the first line that is not blank, of what
/// follows an answer. A model that goes on to write it has finished its answer.
std::optional<std::string> next_turn_mark(const ChatTemplate& chat_template) {
  std::string text;
  for (const TemplateText* part : {&chat_template.after_answer, &chat_template.before_user}) {
    for (const TemplatePiece& piece : *part) text += piece.text;
  }
  const std::size_t first = text.find_first_not_of(" \r\n\t");
  if (first == std::string::npos) return std::nullopt;
  // Of the white space in front of it, the line ends that touch it belong to the mark.
  const std::size_t blank = first == 0 ? std::string::npos : text.find_last_of(" \t", first - 1);
  const std::size_t begin = blank == std::string::npos ? 0 : blank + 1;
  text = text.substr(begin, text.find('\n', first) - begin);
  text.erase(text.find_last_not_of(" \r\t") + 1);
  return text;
}

/// The text before and after the one place of `mark`, if it is there.
struct Split {
  std::string_view before;
  std::string_view after;
};
std::optional<Split> split_at(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return Split{text.substr(0, at), text.substr(at + mark.size())};
}

Split require_split(const std::string& name, std::string_view text, std::string_view mark) {
  const std::optional<Split> split = split_at(text, mark);
  if (!split) {
    throw Error(name + ": no chat template: it has no " + std::string(mark) +
                " (after the line of {{system}}, {{user}} and then {{assistant}} are expected)");
  }
  if (contains(split->after, mark)) {
    throw Error(name + ": " + std::string(mark) + " stands here twice, expected it once");
  }
  return *split;
}

ChatTemplate assemble(std::string name, std::string_view system, std::string_view turn) {
  ChatTemplate made;
  if (!system.empty()) {
    const Split around = require_split(name, system, kSystem);
    made.before_system = to_pieces(around.before);
    made.after_system = to_pieces(around.after);
  }
  const Split user = require_split(name, turn, kUser);
  const Split assistant = require_split(name, user.after, kAssistant);
  made.before_user = to_pieces(user.before);
  made.after_user = to_pieces(assistant.before);
  made.after_answer = to_pieces(assistant.after);
  made.name = std::move(name);
  if (const auto mark = next_turn_mark(made)) made.stop.push_back(*mark);
  return made;
}

ChatTemplate assemble(const BuiltIn& known) {
  ChatTemplate made = assemble(std::string(known.name), known.system, known.turn);
  if (known.name == "none") {
    made.trims_answer = false;
    made.max_tokens = kContinuationTokens;
  }
  made.system_opens_turn = known.name == "llama2";
  return made;
}

/// The text of the Jinja template that a model's folder comes with.
std::optional<std::string> stored_template(const fs::path& model) {
  std::error_code ignored;
  const fs::path jinja = model / "chat_template.jinja";
  if (fs::exists(jinja, ignored)) return read_bytes(jinja.string());
  const fs::path file = model / "tokenizer_config.json";
  if (!fs::exists(file, ignored)) return std::nullopt;
  const nlohmann::json config = read_json_file(file);
  const auto found = config.find("chat_template");
  if (found == config.end()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return std::nullopt;
  // Several templates with names; the one for conversations is called so.
  for (const nlohmann::json& entry : *found) {
    if (entry.is_object() && entry.value("name", nlohmann::json()) == "default" &&
        entry.contains("template") && entry["template"].is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  return std::nullopt;
}

/// The name of the template that has these markers; empty if none has.
std::string_view recognise(std::string_view text) {
  const auto has = [text](auto... marks) { return (contains(text, marks) && ...); };
  if (has("<|im_start|>", "<|im_end|>")) return "chatml";
  if (has("[INST]", "<<SYS>>")) return "llama2";
  const bool eos = has("eos_token") || has("</s>");
  if (has("<|user|>", "<|assistant|>") && eos && !has("<|end|>")) return "zephyr";
  if (has("### Instruction:", "### Response:") && !has("<|EOT|>")) return "alpaca";
  // In Jinja's strings a line end is mostly written as an escape.
  if (has("User: ") && (has("\\nAssistant:") || has("\nAssistant:"))) return "user-assistant";
  return {};
}

const BuiltIn* find_built_in(std::string_view name) {
  const auto* found = std::ranges::find(kBuiltIn, name, &BuiltIn::name);
  return found == kBuiltIn.end() ? nullptr : found;
}

}  // namespace

std::string chat_template_names() {
  std::string names;
  for (const BuiltIn& known : kBuiltIn) names.append(names.empty() ? "" : ", ").append(known.name);
  return names;
}

ChatTemplate find_chat_template(const std::string& name_or_file) {
  if (const BuiltIn* known = find_built_in(name_or_file)) return assemble(*known);
  std::error_code ignored;
  if (!fs::exists(name_or_file, ignored)) {
    throw UsageError("--template: '" + name_or_file + "' is neither a file nor one of " +
                     chat_template_names());
  }
  return parse_chat_template(name_or_file, read_bytes(name_or_file));
}

ChatTemplate parse_chat_template(std::string name, std::string_view text) {
  require_utf8(text, name);
  text = drop_byte_order_mark(text);
  std::size_t system_end = 0;
  const std::size_t system = text.find(kSystem);
  if (system != std::string_view::npos) {
    const std::size_t line_end = text.find('\n', system);
    system_end = line_end == std::string_view::npos ? text.size() : line_end + 1;
  }
  if (contains(text.substr(system_end), kSystem)) {
    throw Error(name + ": {{system}} stands here twice, expected it once");
  }
  return assemble(std::move(name), text.substr(0, system_end), text.substr(system_end));
}

ChatTemplate detect_chat_template(const fs::path& model) {
  const std::optional<std::string> stored = stored_template(model);
  if (!stored) return assemble(*find_built_in("none"));
  const std::string_view name = recognise(*stored);
  if (name.empty()) {
    throw Error(model.string() +
                ": the model's chat template is not one of those known; choose with --template: " +
                chat_template_names() + ", or a file");
  }
  return assemble(*find_built_in(name));
}

}  // namespace openelm::cli
