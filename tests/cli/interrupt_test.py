"""Ctrl-C: the first stops the generation, the second the program, and what was written stays."""

import fcntl
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from program import TIMEOUT, command, environment, is_writing
from sparse_checkpoint import write_checkpoint

ENDLESS = ["complete", "-p", "Once upon a time", "--ignore-eos", "--seed", "1"]
PATIENCE = 60  # seconds that a loaded machine may need


def full_pipe():
    """A pipe so full that whoever writes to it waits, and how many bytes it holds."""
    reader, writer = os.pipe()
    flags = fcntl.fcntl(writer, fcntl.F_GETFL)
    fcntl.fcntl(writer, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    held = 0
    for block in (b"x" * 4096, b"x"):
        try:
            while True:
                held += os.write(writer, block)
        except BlockingIOError:
            pass
    fcntl.fcntl(writer, fcntl.F_SETFL, flags)
    return reader, writer, held


def seconds_computed(proc):
    """Time that a process has spent in its own code."""
    after_name = (proc / "stat").read_text().rpartition(")")[2].split()
    return int(after_name[11]) / os.sysconf("SC_CLK_TCK")


@unittest.skipUnless(os.path.exists("/proc/self/syscall"), "needs Linux's /proc")
class Interrupt(unittest.TestCase):
    def setUp(self):
        self.reader, writer, self.held = full_pipe()
        self.child = subprocess.Popen(
            command(*self.arguments()),
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            env=environment(),
        )
        os.close(writer)
        deadline = time.monotonic() + PATIENCE
        while not is_writing(self.child.pid, 1):
            self.assertLess(time.monotonic(), deadline, "the program never wrote")
            time.sleep(0.01)

    def tearDown(self):
        os.close(self.reader)
        self.child.stderr.close()

    def arguments(self):
        return [*ENDLESS, "--stats"] if "first" in self.id() else ENDLESS

    def output(self):
        with os.fdopen(os.dup(self.reader), "rb") as file:
            return file.read()[self.held :]

    def test_the_first_stops_the_generation(self):
        self.child.send_signal(signal.SIGINT)
        written = self.output()
        self.assertEqual(self.child.wait(TIMEOUT), 130)
        self.assertGreater(len(written), 0)
        self.assertLess(len(written), 40)  # the waiting piece, and at most one token more
        self.assertIn(b"finish reason interrupted", self.child.stderr.read())

    def test_the_second_ends_the_program_at_once(self):
        self.child.send_signal(signal.SIGINT)
        time.sleep(0.05)  # two signals that wait together are one
        self.child.send_signal(signal.SIGINT)
        self.assertEqual(self.child.wait(TIMEOUT), 130)  # although nobody reads

@unittest.skipUnless(os.path.exists("/proc/self/maps"), "needs Linux's /proc")
class InterruptPrompt(unittest.TestCase):
    def test_a_long_prompt_is_not_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            # The prompt takes minutes, and each layer of a pass about a second.
            model = pathlib.Path(folder) / "model"
            weights = write_checkpoint(model, [(4, 1024)] * 48, 256, 64, 1000)
            ids = " ".join(["7"] * 2000)
            child = subprocess.Popen(
                command(
                    *("complete", "-m", model, "--ids", ids, "-n", 0, "--json"),
                    *("--isa", "scalar", "-t", 1),
                ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
            )
            proc = pathlib.Path(f"/proc/{child.pid}")
            deadline = time.monotonic() + PATIENCE
            while seconds_computed(proc) < 1 or weights.name in (proc / "maps").read_text():
                self.assertIsNone(child.poll())
                self.assertLess(time.monotonic(), deadline, "the model was never loaded")
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=TIMEOUT)
        self.assertEqual((child.returncode, err), (130, b""))
        result = json.loads(out)
        # With -n 0 the prompt is all there is to do: what was interrupted is the prompt.
        self.assertEqual(result["finish_reason"], "interrupted")
        self.assertEqual(result["tokens"], [])


if __name__ == "__main__":
    unittest.main()
