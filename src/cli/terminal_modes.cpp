#include "cli/terminal_modes.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <string_view>

#include <termios.h>
#include <unistd.h>

#include <openelm/error.h>

namespace openelm::cli {
namespace {

constexpr std::string_view kMarkPastes = "\x1b[?2004h";
constexpr std::string_view kLeavePastes = "\x1b[?2004l";

// Signals that end the program, and the one that stops it.
constexpr std::array kEndings{SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS};

// A signal handler reaches nothing but objects of static storage. Those that are no atomics are
// written before `kept` becomes true.
std::atomic<bool> kept{false};
std::atomic<bool> pastes_marked{false};
std::atomic<bool> changed{false};
termios original{};
termios at_stop{};
std::array<struct sigaction, kEndings.size()> former_actions{};
struct sigaction former_stop {};
struct sigaction former_continue {};
struct sigaction former_resize {};

void say(std::string_view code) noexcept {
  // Where this fails there is no terminal any more.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, code.data(), code.size());
}

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  return action;
}

extern "C" void on_ending(int signal) {
  restore_terminal();
  for (std::size_t i = 0; i < kEndings.size(); ++i) {
    if (kEndings[i] == signal) ::sigaction(signal, &former_actions[i], nullptr);
  }
  ::raise(signal);  // delivered to the former action when this handler returns
}

extern "C" void on_stop(int) {
  const int error = errno;
  const bool marked = pastes_marked;
  ::tcgetattr(STDIN_FILENO, &at_stop);
  restore_terminal();
  pastes_marked = marked;
  ::sigaction(SIGTSTP, &former_stop, nullptr);
  ::raise(SIGTSTP);
  errno = error;
}

extern "C" void on_continue(int) {
  const int error = errno;
  const struct sigaction stop = action_of(on_stop);
  ::sigaction(SIGTSTP, &stop, nullptr);
  // In the background the terminal belongs to others.
  if (kept && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp()) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &at_stop);
    if (pastes_marked) say(kMarkPastes);
  }
  changed = true;
  errno = error;
}

extern "C" void on_resize(int) { changed = true; }

}  // namespace

void restore_terminal() noexcept {
  if (!kept) return;
  if (pastes_marked.exchange(false)) say(kLeavePastes);
  ::tcsetattr(STDIN_FILENO, TCSANOW, &original);
}

TerminalModes::TerminalModes() {
  if (::tcgetattr(STDIN_FILENO, &original) != 0) {
    throw Error(std::string("standard input: ") + std::strerror(errno));
  }
  at_stop = original;
  kept = true;
  for (std::size_t i = 0; i < kEndings.size(); ++i) {
    const struct sigaction action = action_of(on_ending);
    ::sigaction(kEndings[i], &action, &former_actions[i]);
  }
  const struct sigaction stop = action_of(on_stop);
  const struct sigaction go_on = action_of(on_continue);
  const struct sigaction resize = action_of(on_resize);
  ::sigaction(SIGTSTP, &stop, &former_stop);
  ::sigaction(SIGCONT, &go_on, &former_continue);
  ::sigaction(SIGWINCH, &resize, &former_resize);
}

TerminalModes::~TerminalModes() {
  restore_terminal();
  kept = false;
  for (std::size_t i = 0; i < kEndings.size(); ++i) {
    ::sigaction(kEndings[i], &former_actions[i], nullptr);
  }
  ::sigaction(SIGTSTP, &former_stop, nullptr);
  ::sigaction(SIGCONT, &former_continue, nullptr);
  ::sigaction(SIGWINCH, &former_resize, nullptr);
}

void TerminalModes::make_quiet() noexcept {
  termios quiet = original;
  quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  quiet.c_cc[VMIN] = 1;
  quiet.c_cc[VTIME] = 0;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
}

void TerminalModes::mark_pastes(bool on) noexcept {
  pastes_marked = on;
  say(on ? kMarkPastes : kLeavePastes);
}

bool TerminalModes::take_changed() noexcept { return changed.exchange(false); }

}  // namespace openelm::cli
