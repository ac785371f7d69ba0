#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace openelm::cli {

/// A stretch of text, or a control token, which text can never become.
struct TemplatePiece {
  enum class Kind { text, bos, eos };
  Kind kind = Kind::text;
  std::string text = {};

  friend bool operator==(const TemplatePiece&, const TemplatePiece&) = default;
};
using TemplateText = std::vector<TemplatePiece>;

/// How turns are written down for a model. BOS stands in front of all.
struct ChatTemplate {
  std::string name;
  TemplateText before_system;  ///< around the system text, where there is one
  TemplateText after_system;
  TemplateText before_user;
  TemplateText after_user;
  TemplateText after_answer;       ///< before the next turn
  bool system_opens_turn = false;  ///< after the system text the first turn has no before_user
  std::vector<std::string> stop;   ///< where an answer ends that went on to write the user's part
  bool trims_answer = true;        ///< white space around an answer is not shown
  std::int32_t max_tokens = -1;    ///< of an answer unless asked otherwise; -1: until it ends
};

/// "none, user-assistant, ...": the names that find_chat_template knows.
std::string chat_template_names();

/// The template of that name, else the one in the file of that name. Throws UsageError when there
/// is neither, Error when the file is no template.
ChatTemplate find_chat_template(const std::string& name_or_file);

/// Reads a template of one's own: text as it is, with {{system}}, {{user}}, {{assistant}}, and
/// {{bos}} and
/// {{eos}} for control tokens. The lines up to that of {{system}} stand once at the beginning, when
/// there is a system text; the rest is repeated for each turn. Throws Error that begins with
/// `name`.
ChatTemplate parse_chat_template(std::string name, std::string_view text);

/// The template that the model's folder asks for in chat_template.jinja or tokenizer_config.json,
/// recognised by its markers; `none` where it asks for none. Throws Error, with the names of those
/// known, when it asks for another.
ChatTemplate detect_chat_template(const std::filesystem::path& model);

}  // namespace openelm::cli
