#include "cli/interrupt.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string>

#include <unistd.h>

#include "cli/exit_code.h"
#include "cli/terminal_modes.h"

namespace openelm::cli {
namespace {

// A signal handler reaches nothing but objects of static storage. All of these are lock-free.
std::atomic<bool> requested{false};
std::atomic<int> presses{0};
std::atomic<int> allowed_presses{0};
std::array<char, 1024> bus_error_message{};
std::atomic<std::size_t> bus_error_length{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int) {
  requested.store(true);
  if (presses.fetch_add(1) < allowed_presses.load()) return;
  restore_terminal();
  ::_exit(kExitInterrupted);
}

extern "C" void on_bus_error(int) {
  restore_terminal();
  // The result does not matter: the process ends on the next line.
  [[maybe_unused]] const auto written =
      ::write(STDERR_FILENO, bus_error_message.data(), bus_error_length.load());
  ::_exit(kExitFailure);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  // Without SA_RESTART, so that a waiting read returns.
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_signal_handlers() {
  handle(SIGINT, on_interrupt);
  handle(SIGPIPE, SIG_IGN);
}

InterruptScope::InterruptScope(int patience) {
  reset();
  allowed_presses = patience;
}

InterruptScope::~InterruptScope() { allowed_presses = 0; }

const std::atomic<bool>& InterruptScope::requested() const noexcept { return cli::requested; }

void InterruptScope::reset() noexcept {
  presses = 0;
  cli::requested = false;
}

MappedFileGuard::MappedFileGuard(const char* what) {
  const std::string text = std::string("openelm: error: ") + what +
                           ": a file became shorter or unreadable while it was being read\n";
  bus_error_length = std::min(text.size(), bus_error_message.size());
  std::memcpy(bus_error_message.data(), text.data(), bus_error_length);
  handle(SIGBUS, on_bus_error);
}

MappedFileGuard::~MappedFileGuard() { handle(SIGBUS, SIG_DFL); }

}  // namespace openelm::cli
