"""chat on a terminal: prompt sign, commands, Ctrl-C and Ctrl-D, and a terminal left as it was."""

import os
import pty
import re
import select
import signal
import tempfile
import termios
import time
import unittest

from program import CASES, PROGRAM, command, environment, is_writing

PROMPT = "> "
PASTE_MARKS = re.compile("\x1b\\[\\?2004[hl]")
CTRL_C, CTRL_D, CTRL_Q, CTRL_S = "\x03", "\x04", "\x11", "\x13"
PATIENCE = 60  # seconds that a loaded machine may need


class Terminal:
    """The program on a pseudo-terminal of its own, which is its controlling one."""

    def __init__(self, *arguments, env=None):
        self.shown = ""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.execve(PROGRAM, command(*arguments), env)
        self.before = termios.tcgetattr(self.descriptor)

    def send(self, text):
        os.write(self.descriptor, text.encode())

    def read(self, seconds):
        """What is shown within that time; "" when nothing is, None after the program has gone."""
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return ""
        try:
            block = os.read(self.descriptor, 4096)
        except OSError:
            return None
        return block.decode(errors="replace") if block else None

    def wait_for(self, text):
        """What was shown up to `text`, which must come."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.shown:
            part = self.read(1)
            if part is None or time.monotonic() > deadline:
                raise AssertionError(f"no {text!r} in {self.shown!r}")
            self.shown = PASTE_MARKS.sub("", self.shown + part)
        before, self.shown = self.shown.split(text, 1)
        return before

    def leave(self):
        """The exit status, after the rest of the output was read into `shown`."""
        deadline = time.monotonic() + PATIENCE
        while (part := self.read(1)) is not None:
            self.shown += part
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"still running; shown: {self.shown!r}")
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)

    def close(self):
        os.close(self.descriptor)


class ChatTerminal(unittest.TestCase):
    def start(self, *arguments, env=None):
        state = tempfile.TemporaryDirectory()
        self.addCleanup(state.cleanup)
        env = {"XDG_STATE_HOME": state.name, **(env or environment(TERM="xterm"))}
        terminal = Terminal("chat", *arguments, env=env)
        self.addCleanup(terminal.close)
        terminal.wait_for(PROMPT)
        return terminal

    def test_a_turn_and_ctrl_d(self):
        terminal = self.start("-n", 8, "--temperature", 0)
        terminal.send("Hi\n")
        shown = terminal.wait_for(PROMPT)
        echo, answer = shown.split("\r\n", 1)
        self.assertEqual(echo, "Hi")
        self.assertRegex(answer, r"^\S.*\S\r\n$")
        self.assertNotIn("\x1b", shown)
        terminal.send(CTRL_D)
        self.assertEqual(terminal.leave(), 0)
        self.assertTrue(terminal.shown.endswith("\r\n"))

    def test_blank_lines_are_no_turns(self):
        terminal = self.start("-n", 8, "--temperature", 0)
        for line in ("\n", "   \n", "\t\n"):
            terminal.send(line)
            self.assertNotRegex(terminal.wait_for(PROMPT), "[a-zA-Z]{2}")
        terminal.send("/quit\n")
        self.assertEqual(terminal.leave(), 0)

    def test_ctrl_c_at_the_prompt(self):
        terminal = self.start("-n", 4)
        terminal.send(CTRL_C)
        self.assertIn("Ctrl-D", terminal.wait_for(PROMPT))
        # A turn in between: the next press explains again.
        terminal.send("Hi\n")
        terminal.wait_for(PROMPT)
        terminal.send(CTRL_C)
        self.assertIn("Ctrl-D", terminal.wait_for(PROMPT))
        terminal.send(CTRL_C)
        self.assertEqual(terminal.leave(), 130)
        self.assertEqual(termios.tcgetattr(terminal.descriptor), terminal.before)

    def test_ctrl_c_drops_the_line_being_typed(self):
        terminal = self.start("-n", 4, "--json")
        terminal.send("never sent")
        terminal.wait_for("never sent")
        terminal.send(CTRL_C)
        terminal.wait_for(PROMPT)
        terminal.send("Hi\n")
        self.assertIn('"prompt":"Hi"', terminal.wait_for("}\r\n"))
        terminal.wait_for(PROMPT)
        # Ctrl-D hands over an unfinished line, which is no end of input; then it is dropped too.
        terminal.send("handed over" + CTRL_D)
        terminal.wait_for("handed over")
        time.sleep(0.3)
        terminal.send(CTRL_C)
        terminal.wait_for(PROMPT)
        terminal.send("Hi\n")
        self.assertIn('"prompt":"Hi"', terminal.wait_for("}\r\n"))

    @unittest.skipUnless(os.path.exists("/proc/self/syscall"), "needs Linux's /proc")
    def test_ctrl_c_stops_the_answer_only(self):
        terminal = self.start("--ignore-eos", "-n", 300, "--stats")
        # Ctrl-S stops the terminal, so that the program waits in the middle of its answer.
        # The answer may be over before the key arrives: then another one is asked for.
        for _ in range(PATIENCE):
            terminal.send("Hi\n")
            terminal.wait_for("\r\n")
            terminal.send(CTRL_S)
            deadline = time.monotonic() + 1
            while not is_writing(terminal.pid, 1) and time.monotonic() < deadline:
                time.sleep(0.01)
            if is_writing(terminal.pid, 1):
                break
            terminal.send(CTRL_Q)
            terminal.wait_for("finish reason")
            terminal.wait_for(PROMPT)
            terminal.send("/reset\n")
            terminal.wait_for(PROMPT)
        terminal.send(CTRL_C)  # also sets the terminal going again
        self.assertIn("finish reason interrupted", terminal.wait_for(PROMPT))
        # What was written is part of the conversation: nothing before it is evaluated again.
        terminal.send("Go on.\n")
        stats = terminal.wait_for(PROMPT)
        evaluated = int(stats.split("prompt:")[1].split()[0])
        self.assertLess(evaluated, 20)
        self.assertIn("finish reason length", stats)
        terminal.send(CTRL_D)
        self.assertEqual(terminal.leave(), 0)
        self.assertEqual(termios.tcgetattr(terminal.descriptor), terminal.before)

    def test_commands(self):
        terminal = self.start("-n", 4, "--stats", "--temperature", 0)
        terminal.send("/help\n")
        listed = terminal.wait_for(PROMPT)
        for name in ("/reset", "/quit", "/help"):
            self.assertIn(name, listed)
        terminal.send("Hi\n")
        first = terminal.wait_for(PROMPT)
        terminal.send("/reset\n")
        terminal.wait_for(PROMPT)
        terminal.send("Hi\n")
        again = terminal.wait_for(PROMPT)
        self.assertEqual(first.splitlines()[1], again.splitlines()[1])
        terminal.send("/undu now\n")
        refused = terminal.wait_for(PROMPT)
        self.assertIn("/undu:", refused)
        self.assertIn("/help", refused)
        self.assertNotIn("generation:", refused)

    def test_a_message_too_long_is_refused_and_the_chat_goes_on(self):
        terminal = self.start("-n", 4, "--context", 32, "--json")
        terminal.send("word " * 50 + "\n")
        self.assertIn("the context holds 32", terminal.wait_for(PROMPT))
        terminal.send("Hi\n")
        self.assertIn('"turn":1', terminal.wait_for("}\r\n"))

    def test_accents_in_every_locale(self):
        text = (CASES / "b06_accents.txt").read_text(encoding="utf-8").strip()
        for locale in ("C", "C.UTF-8"):
            terminal = self.start("-n", 1, "--json", env=environment(TERM="xterm", LC_ALL=locale))
            terminal.send(text + "\n")
            terminal.wait_for(text)  # the echo
            self.assertIn(text, terminal.wait_for("}\r\n"))
            terminal.send(CTRL_D)
            self.assertEqual(terminal.leave(), 0)


if __name__ == "__main__":
    unittest.main()
