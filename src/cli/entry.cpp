#include "cli/entry.h"

#include "cli/answer_printer.h"

namespace openelm::cli {
namespace {

constexpr std::string_view kMark = "\"\"\"";

bool begins_block(std::string_view entry) { return trim(entry).starts_with(kMark); }

bool ends_block(std::string_view entry) {
  const std::string_view block = trim(entry);
  return block.size() >= 2 * kMark.size() && block.ends_with(kMark);
}

}  // namespace

bool is_unfinished(std::string_view entry) {
  if (begins_block(entry)) return !ends_block(entry);
  return entry.ends_with('\\');
}

void begin_next_line(std::string& entry) {
  if (!begins_block(entry) && entry.ends_with('\\')) entry.pop_back();
  entry += '\n';
}

std::string entry_text(std::string_view entry) {
  if (!begins_block(entry) || !ends_block(entry)) return std::string(entry);
  std::string_view inside = trim(entry);
  inside.remove_prefix(kMark.size());
  inside.remove_suffix(kMark.size());
  if (inside.starts_with('\n')) inside.remove_prefix(1);
  if (inside.ends_with('\n')) inside.remove_suffix(1);
  return std::string(inside);
}

}  // namespace openelm::cli
