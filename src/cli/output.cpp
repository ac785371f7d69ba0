#include "cli/output.h"

#include <cerrno>
#include <cstring>
#include <string>

#include <unistd.h>

#include <openelm/error.h>

#include "base/write_all.h"

namespace openelm::cli {
namespace {

[[noreturn]] void fail(int error) {
  if (error == EPIPE) throw OutputClosed();
  throw Error(std::string("cannot write to standard output: ") + std::strerror(error));
}

}  // namespace

Output::Output() : terminal_(::isatty(STDOUT_FILENO) == 1) {}

void Output::write(std::string_view bytes) {
  if (!bytes.empty()) at_line_start_ = bytes.back() == '\n';
  if (const int error = write_all(STDOUT_FILENO, bytes); error != 0) fail(error);
}

void Output::line(std::string_view bytes) {
  std::string whole(bytes);
  whole += '\n';
  write(whole);
}

void Output::end_line_on_terminal() {
  if (terminal_ && !at_line_start_) write("\n");
}

void Output::close() {
  // EBADF: the program was started without a standard output, and had nothing to write.
  if (::close(STDOUT_FILENO) != 0 && errno != EINTR && errno != EBADF) fail(errno);
}

}  // namespace openelm::cli
