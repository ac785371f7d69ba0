#include "cli/entry_reader.h"

#include <iostream>

#include <unistd.h>

#include "cli/entry.h"

namespace openelm::cli {
namespace {

EntryReader::Result to_result(LineReader::Result read) {
  switch (read) {
    case LineReader::Result::line:
    case LineReader::Result::too_long:  // no limit was set
      return EntryReader::Result::entry;
    case LineReader::Result::interrupted:
      return EntryReader::Result::interrupted;
    case LineReader::Result::end:
      break;
  }
  return EntryReader::Result::end;
}

void show_sign(const char* sign) {
  if (::isatty(STDERR_FILENO) == 1) std::cerr << sign << std::flush;
}

}  // namespace

EntryReader::Result PipeReader::read(std::string& entry, const std::string&,
                                     const std::atomic<bool>& interrupt) {
  return to_result(lines_.read(entry, interrupt));
}

EntryReader::Result PlainTerminalReader::read(std::string& entry, const std::string&,
                                              const std::atomic<bool>& interrupt) {
  entry.clear();
  show_sign("> ");
  std::string line;
  while (true) {
    const Result result = to_result(lines_.read(line, interrupt));
    if (result != Result::entry) {
      show_sign("\n");
      return result;
    }
    entry += line;
    if (!is_unfinished(entry)) break;
    begin_next_line(entry);
    show_sign(". ");
  }
  entry = entry_text(entry);
  return Result::entry;
}

}  // namespace openelm::cli
