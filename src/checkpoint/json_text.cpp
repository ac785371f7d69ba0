#include "checkpoint/json_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <vector>

#include <openelm/error.h>

#include "base/mapped_file.h"
#include "base/utf8.h"
#include "checkpoint/message_text.h"

namespace openelm {
namespace {

using nlohmann::json;

constexpr int kDeepest = 64;
constexpr std::size_t kLargestFile = std::size_t{64} << 20;

// DEL is legal inside a JSON string and appears in no sensible one.
constexpr char kNonFinite = '\x7F';
constexpr std::array<std::string_view, 3> kNonFiniteTokens = {"-Infinity", "Infinity", "NaN"};

/// What stands for a token until it is read: a string as long as the token.
std::string marker(std::string_view token) {
  return '"' + std::string(token.size() - 2, kNonFinite) + '"';
}

/// Follows the parse to refuse what the JSON library lets pass.
class Strictness {
 public:
  explicit Strictness(const std::string& where) : where_(where) {}

  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    switch (event) {
      case json::parse_event_t::object_start:
      case json::parse_event_t::array_start:
        if (depth >= kDeepest) {
          throw Error(where_ + ": nested deeper than " + std::to_string(kDeepest) + " levels");
        }
        if (event == json::parse_event_t::object_start) keys_.emplace_back();
        break;
      case json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case json::parse_event_t::key: {
        const auto& key = parsed.get_ref<const std::string&>();
        if (!keys_.back().insert(key).second) {
          throw Error(where_ + ": repeated key " + in_quotes(key));
        }
        break;
      }
      default:
        break;
    }
    return true;
  }

 private:
  const std::string& where_;
  std::vector<std::set<std::string>> keys_;
};

/// The library's message without its own prefix: "line 3, column 5: ...".
std::string reason_of(const json::exception& error) {
  std::string_view reason = error.what();
  if (const auto end = reason.find("] "); end != reason.npos) reason.remove_prefix(end + 2);
  constexpr std::string_view kPrefix = "parse error at ";
  if (reason.starts_with(kPrefix)) reason.remove_prefix(kPrefix.size());
  return printable(reason, 300);
}

bool starts_with_ignoring_case(std::string_view text, std::string_view lower) {
  return text.size() >= lower.size() &&
         std::equal(lower.begin(), lower.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

/// Puts a string of the same length in the place of every bare NaN, Infinity and -Infinity, so that
/// lines and columns stay as they are in the file.
void mark_nonfinite_numbers(std::string& text) {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (in_string && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const std::string_view token : kNonFiniteTokens) {
        if (text.compare(i, token.size(), token) != 0) continue;
        text.replace(i, token.size(), marker(token));
        i += token.size() - 1;
        break;
      }
    }
  }
}

}  // namespace

bool is_nonfinite_marker(const json& value) {
  return value.is_string() && value.get_ref<const std::string&>().starts_with(kNonFinite);
}

json parse_json_object(std::string_view text, const std::string& where) {
  if (const auto nul = text.find('\0'); nul != text.npos) {
    throw Error(where + ": not valid JSON: NUL at byte " + std::to_string(nul));
  }
  json value;
  try {
    value = json::parse(text.begin(), text.end(), Strictness(where));
  } catch (const json::exception& error) {
    throw Error(where + ": not valid JSON: " + reason_of(error));
  }
  if (!value.is_object()) throw Error(where + ": not a JSON object");
  return value;
}

json parse_python_json(std::string_view text, const std::string& where) {
  std::string copy(drop_byte_order_mark(text));
  mark_nonfinite_numbers(copy);
  return parse_json_object(copy, where);
}

json read_json_file(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (const auto impostor = recognize_impostor(text)) throw Error(path.string() + ": " + *impostor);
  if (text.size() > kLargestFile) {
    throw Error(path.string() + ": " + std::to_string(text.size()) +
                " bytes is too large for this file");
  }
  return parse_python_json(text, path.string());
}

std::string python_json_text(const json& value) {
  constexpr int kIndent = 4;
  std::string text = value.dump(kIndent);
  for (const std::string_view token : kNonFiniteTokens) {
    for (std::size_t at = 0; (at = text.find(marker(token), at)) != text.npos;) {
      text.replace(at, token.size(), token);
    }
  }
  return text + '\n';
}

std::optional<std::string> recognize_impostor(std::string_view start) {
  if (start.starts_with("version https://git-lfs")) {
    return "looks like a Git LFS pointer, not the file itself: run \"git lfs pull\" or download it "
           "again";
  }
  const auto text = start.substr(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  if (starts_with_ignoring_case(text, "<!doctype") || starts_with_ignoring_case(text, "<html") ||
      starts_with_ignoring_case(text, "<?xml")) {
    return "looks like a web page saved in place of the file: download it again (a login may be "
           "needed)";
  }
  return std::nullopt;
}

}  // namespace openelm
