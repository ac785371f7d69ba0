"""Editing of chat entries on a terminal, and the commands that change a conversation."""

import fcntl
import json
import os
import pathlib
import signal
import stat
import struct
import tempfile
import termios
import unittest

from chat_terminal_test import CTRL_D, PROMPT, Terminal
from program import environment

LEFT, UP, ALT_ENTER, BACKSPACE = "\x1b[D", "\x1b[A", "\x1b\r", "\x7f"
PASTE, PASTE_END = "\x1b[200~", "\x1b[201~"


class Editing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def start(self, *arguments, locale=None):
        env = environment(TERM="xterm", XDG_STATE_HOME=str(self.folder), LC_ALL=locale)
        terminal = Terminal("chat", "--json", "-n", 2, "--context", 512, *arguments, env=env)
        self.addCleanup(terminal.close)
        terminal.wait_for(PROMPT)
        return terminal

    def turn(self, terminal, keys):
        """The turn that these keys and Enter make."""
        terminal.send(keys + "\r")
        terminal.wait_for('{"turn":')
        shown = terminal.wait_for("}\r\n")
        terminal.wait_for(PROMPT)
        return json.loads('{"turn":' + shown + "}")

    def entered(self, terminal, keys):
        return self.turn(terminal, keys)["prompt"]

    def test_characters_are_edited_whole_in_every_locale(self):
        for locale in ("C", "C.UTF-8"):
            terminal = self.start(locale=locale)
            self.assertEqual(self.entered(terminal, "ab" + LEFT + "é"), "aéb")
            for character in ("é", "你", "🙂", "e\u0301", "👍🏽", "👩\u200d🔬"):
                keys = "x" + character + BACKSPACE + "y"
                self.assertEqual(self.entered(terminal, keys), "xy", character)
                keys = "x" + character + LEFT + LEFT + "z"
                self.assertEqual(self.entered(terminal, keys), "zx" + character, character)

    def test_a_paste_is_one_turn(self):
        text = "def f():\n\n\tif x:\n        return 1\n"
        terminal = self.start()
        pasted = PASTE + text.replace("\n", "\r") + PASTE_END
        self.assertEqual(self.entered(terminal, pasted), text)

    def test_a_long_paste(self):
        terminal = self.start()
        text = "word " * 4000
        for start in range(0, len(text), 1000):
            part = text[start : start + 1000]
            begin, end = PASTE if start == 0 else "", PASTE_END if start == 19000 else ""
            terminal.send(begin + part + end)
        terminal.send("\r")
        terminal.wait_for("tokens with all that")
        terminal.wait_for("the context holds 512")

    def test_several_lines(self):
        terminal = self.start()
        self.assertEqual(self.entered(terminal, "a\\\rb"), "a\nb")
        self.assertEqual(self.entered(terminal, "a" + ALT_ENTER + "  b"), "a\n  b")
        self.assertEqual(self.entered(terminal, '"""\r\r  a\rb\r"""'), "\n  a\nb")

    def test_history_across_runs_is_private(self):
        terminal = self.start()
        self.entered(terminal, "first")
        self.entered(terminal, "second\\\rline")
        terminal.send(CTRL_D)
        self.assertEqual(terminal.leave(), 0)
        terminal = self.start()
        self.assertEqual(self.entered(terminal, UP + LEFT + UP + UP), "first")
        self.assertEqual(self.entered(terminal, "\x12seco\x1b"), "second\nline")
        (file,) = self.folder.rglob("*.jsonl")
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)

    def test_no_history(self):
        terminal = self.start("--no-history")
        self.entered(terminal, "secret")
        self.assertEqual(list(self.folder.rglob("*.jsonl")), [])

    def test_completion(self):
        terminal = self.start()
        terminal.send("/und\t\r")
        self.assertIn("nothing to undo", terminal.wait_for("undo\r\n") + "undo")

    def test_a_resize_keeps_the_entry(self):
        terminal = self.start()
        terminal.send("hello")
        terminal.wait_for("hello")
        size = struct.pack("HHHH", 10, 30, 0, 0)
        fcntl.ioctl(terminal.descriptor, termios.TIOCSWINSZ, size)
        self.assertEqual(self.entered(terminal, " you"), "hello you")

    def test_modes_come_back_after_signals(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV, signal.SIGABRT):
            terminal = self.start()
            os.kill(terminal.pid, number)
            self.assertNotEqual(terminal.leave(), 0)
            self.assertEqual(termios.tcgetattr(terminal.descriptor), terminal.before)

    def test_conversation_commands(self):
        terminal = self.start("--temperature", 0)
        first = self.turn(terminal, "Hi")
        second = self.turn(terminal, "Go on.")
        terminal.send("/undo\r")
        terminal.wait_for("taken back")
        again = self.turn(terminal, "Go on.")
        retried = self.turn(terminal, "/retry")
        for turn in (again, retried):
            self.assertEqual(turn["tokens"], second["tokens"])
            self.assertEqual(turn["usage"], second["usage"])
        terminal.send(f"/save {self.folder}/chat.json\r")
        terminal.wait_for("saved in")
        saved = json.loads((self.folder / "chat.json").read_text())
        self.assertEqual([t["user"] for t in saved["turns"]], ["Hi", "Go on."])
        self.assertEqual(saved["turns"][0]["answer_ids"], first["tokens"])
        terminal.send("/reset\r")
        terminal.wait_for("forgotten")
        terminal.send(f"/load {self.folder}/chat.json\r")
        terminal.wait_for("loaded from")
        self.assertEqual(self.turn(terminal, "/retry")["usage"], second["usage"])
        terminal.send("/set top_k 0\r/set\r")
        self.assertRegex(terminal.wait_for("ignore-eos"), r"top-k +0\r")
        terminal.send("/set top-p 2\r")
        terminal.wait_for("between 0 and 1")


if __name__ == "__main__":
    unittest.main()
