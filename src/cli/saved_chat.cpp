#include "cli/saved_chat.h"

#include <limits>
#include <string_view>

#include <nlohmann/json.hpp>

#include <openelm/error.h>

#include "base/utf8.h"
#include "checkpoint/json_text.h"
#include "cli/input_text.h"

namespace openelm::cli {
namespace {

using nlohmann::json;

constexpr const char* kFormat = "openelm-chat-1";

/// A text that is a JSON number or truth value is written as one.
json setting_json(const std::string& value) {
  json parsed = json::parse(value, nullptr, /*allow_exceptions=*/false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : json(value);
}

/// Fields of an object whose type was checked; failures name the file and the field.
class Fields {
 public:
  Fields(std::string where, const json& object) : where_(std::move(where)), object_(object) {
    if (!object.is_object()) throw Error(where_ + ": expected an object");
  }

  std::string text(const char* name) const {
    const json& value = require(name, "a text", &json::is_string);
    return value.get<std::string>();
  }

  const json& list(const char* name) const { return require(name, "a list", &json::is_array); }

  const json& object(const char* name) const {
    return require(name, "an object", &json::is_object);
  }

  std::vector<TokenId> ids(const char* name) const {
    std::vector<TokenId> ids;
    for (const json& id : list(name)) {
      if (!id.is_number_unsigned() ||
          id.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<TokenId>::max()}) {
        throw Error(where_ + ": \"" + name + "\" must hold token ids, has " + id.dump());
      }
      ids.push_back(id.get<TokenId>());
    }
    return ids;
  }

 private:
  const json& require(const char* name, const char* what,
                      bool (json::*is_right)() const noexcept) const {
    const auto found = object_.find(name);
    if (found == object_.end() || !((*found).*is_right)()) {
      throw Error(where_ + ": \"" + name + "\" must be " + what);
    }
    return *found;
  }

  std::string where_;
  const json& object_;
};

}  // namespace

std::string to_json_text(const SavedChat& chat) {
  std::string text = "{\n";
  const auto field = [&text](std::string_view indent, const char* name, const json& value,
                             bool last = false) {
    text.append(indent).append(json(name).dump()).append(": ").append(value.dump());
    text += last ? "\n" : ",\n";
  };
  field("  ", "format", kFormat);
  field("  ", "model", chat.model);
  field("  ", "fingerprint", chat.fingerprint);
  field("  ", "template", chat.chat_template);
  field("  ", "system", chat.system);
  text += "  \"settings\": {\n";
  for (const Setting& setting : chat.settings) {
    const bool last = &setting == &chat.settings.back();
    field("    ", setting.name.c_str(), setting_json(setting.value), last);
  }
  text += "  },\n  \"turns\": [";
  for (const Turn& turn : chat.turns) {
    text += &turn == &chat.turns.front() ? "\n    {\n" : ",\n    {\n";
    field("      ", "user", turn.user);
    field("      ", "answer", replace_invalid_utf8(turn.answer));
    field("      ", "answer_ids", turn.answer_ids, true);
    text += "    }";
  }
  text += chat.turns.empty() ? "],\n" : "\n  ],\n";
  field("  ", "ids", chat.ids, true);
  return text + "}\n";
}

SavedChat read_saved_chat(const std::filesystem::path& file) {
  const std::string name = file.string();
  const json object = parse_json_object(read_bytes(name), name);
  const Fields fields(name, object);
  if (fields.text("format") != kFormat) {
    throw Error(name + ": \"format\" is '" + fields.text("format") + "', expected '" + kFormat +
                "'");
  }
  SavedChat chat{.model = fields.text("model"),
                 .fingerprint = fields.text("fingerprint"),
                 .chat_template = fields.text("template"),
                 .system = fields.text("system"),
                 .settings = {},
                 .turns = {},
                 .ids = fields.ids("ids")};
  for (const auto& [key, value] : fields.object("settings").items()) {
    chat.settings.push_back({key, value.is_string() ? value.get<std::string>() : value.dump()});
  }
  for (const json& entry : fields.list("turns")) {
    const Fields turn(name + ": turn " + std::to_string(chat.turns.size() + 1), entry);
    chat.turns.push_back({.user = turn.text("user"),
                          .answer = turn.text("answer"),
                          .answer_ids = turn.ids("answer_ids")});
  }
  return chat;
}

}  // namespace openelm::cli
