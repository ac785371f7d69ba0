"""Where output goes: stdout holds the result and nothing else, whatever it is connected to."""

import os
import pty
import subprocess
import threading
import unittest

from program import TIMEOUT, command, environment, run, succeed

ESCAPE = b"\x1b"
TELL = ["complete", "-p", "Once upon a time", "-n", "20", "--seed", "1"]


def run_on_terminal(*arguments, env=None, terminal=("stdout", "stderr")):
    """Runs with some streams on one terminal, the others piped or empty.

    Returns the status, what the terminal showed, stdout and stderr.
    """
    ours, theirs = pty.openpty()
    streams = {
        name: theirs if name in terminal else subprocess.PIPE for name in ("stdout", "stderr")
    }
    streams["stdin"] = theirs if "stdin" in terminal else subprocess.DEVNULL
    child = subprocess.Popen(command(*arguments), env=env or environment(), **streams)
    os.close(theirs)
    shown = bytearray()

    def read_terminal():
        try:
            while block := os.read(ours, 4096):
                shown.extend(block)
        except OSError:  # the last holder of the other side has gone
            pass

    reader = threading.Thread(target=read_terminal)
    reader.start()
    out, err = child.communicate(timeout=TIMEOUT)
    reader.join(TIMEOUT)
    os.close(ours)
    return child.returncode, bytes(shown), out or b"", err or b""


class Streams(unittest.TestCase):
    def test_stdout_is_the_answer_alone(self):
        loud = run(*TELL, "--stats", "--log-level", "debug")
        quiet = run(*TELL, "-q")
        self.assertEqual(loud.out, quiet.out)
        self.assertGreater(len(quiet.out), 20)
        self.assertEqual(quiet.err, "")
        self.assertIn("openelm: debug: ", loud.err)

    def test_quiet_silences_warnings_but_not_errors(self):
        warned = ["complete", "-p", "ends in a space ", "-n", "1"]
        self.assertIn("warning", run(*warned).err)
        self.assertEqual(run(*warned, "-q").err, "")
        self.assertEqual(run(*warned, "--log-level", "error").err, "")
        self.assertIn("no such model", run("complete", "-q", "-p", "A", "-m", "/nowhere").err)

    def test_no_escape_codes_without_a_terminal(self):
        for command_line in (TELL, ["chat", "-n", "20"]):
            result = succeed(*command_line, "--stats", stdin=b"Hi\n", env=environment(TERM="xterm"))
            self.assertNotIn(ESCAPE, result.out)
            self.assertNotIn("\x1b", result.err)
            self.assertNotIn("\r", result.err)

    def test_colours_of_messages(self):
        failing = ["complete", "-p", "A", "-m", "/nowhere"]
        on = environment(TERM="xterm")
        for expected, options, env in [
            (True, [], on),
            (False, ["--color=never"], on),
            (False, [], environment(TERM="dumb")),
            (False, [], environment(TERM="xterm", NO_COLOR="1")),
            (True, ["--color=always"], environment(NO_COLOR="1")),
        ]:
            status, shown, _, _ = run_on_terminal(*failing, *options, env=env)
            self.assertEqual(status, 1)
            self.assertEqual(ESCAPE in shown, expected, (options, shown))
        self.assertIn("\x1b", run(*failing, "--color", "always").err)

    def test_the_answer_on_a_terminal_ends_its_line(self):
        plain = succeed(*TELL).out
        status, shown, _, err = run_on_terminal(*TELL, terminal=("stdout",))
        self.assertEqual((status, err), (0, b""))
        self.assertFalse(plain.endswith(b"\n"))
        self.assertEqual(shown, plain.replace(b"\n", b"\r\n") + b"\r\n")

    def test_nothing_is_awaited_from_a_terminal(self):
        for arguments in (["complete"], ["tokenize"], ["detokenize"], ["logits"]):
            status, shown, out, err = run_on_terminal(*arguments, terminal=("stdin",))
            self.assertEqual((status, shown, out), (2, b"", b""))
            self.assertIn(b"nothing to", err)


class Failing(unittest.TestCase):
    def test_full_disk(self):
        for arguments in (
            TELL,
            [*TELL, "--json"],
            ["tokenize", "A"],
            ["inspect"],
            ["--help"],
            ["logits", "-p", "A"],
            ["detokenize", "385"],
            ["chat"],
        ):
            with open("/dev/full", "wb") as full:
                done = subprocess.run(
                    command(*arguments),
                    input=b"Hi\n",
                    stdout=full,
                    stderr=subprocess.PIPE,
                    env=environment(),
                    timeout=TIMEOUT,
                )
            self.assertEqual(done.returncode, 1, arguments)
            self.assertEqual(done.stderr.count(b"\n"), 1)
            self.assertIn(b"No space left", done.stderr)

    def test_a_reader_that_leaves_ends_the_program_quietly(self):
        endless = ["complete", "-p", "Once", "--ignore-eos", "--stats", "-t", "1", "--seed", "1"]
        child = subprocess.Popen(
            command(*endless),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        child.stdout.close()  # before anything can have been written
        err = child.stderr.read()
        self.assertEqual(child.wait(TIMEOUT), 0)
        # Had the generation gone on, its statistics would be here.
        self.assertEqual(err, b"")
        child.stderr.close()

    def test_no_standard_output_at_all(self):
        done = subprocess.run(
            ["sh", "-c", '"$@" >&-', "sh", *command(*TELL)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=TIMEOUT,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output", done.stderr)


if __name__ == "__main__":
    unittest.main()
