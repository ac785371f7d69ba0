#pragma once

#include <string>
#include <string_view>

namespace openelm::cli {

// What is typed may take several lines: a backslash at a line's end, and a block between two """,
// go on to the next.

/// The entry goes on after its last line.
bool is_unfinished(std::string_view entry);

/// Begins the next line of an unfinished entry: the backslash goes, the line end comes.
void begin_next_line(std::string& entry);

/// What an entry says: a block without its marks and the line ends next to them, anything else as
/// it is.
std::string entry_text(std::string_view entry);

}  // namespace openelm::cli
