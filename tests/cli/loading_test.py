"""What may happen while a large model is being loaded."""

import os
import pathlib
import pty
import resource
import signal
import subprocess
import tempfile
import time
import unittest

from program import PROGRAM, TIMEOUT, command, environment
from sparse_checkpoint import write_checkpoint

ATTEMPTS = 20  # to catch the moment, which is missed where the machine is busy


class Memory(unittest.TestCase):
    @unittest.skipIf(
        b"__asan_init" in pathlib.Path(PROGRAM).read_bytes(),
        "AddressSanitizer reserves terabytes of addresses",
    )
    def test_too_little_memory_is_one_line(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (30 << 20, 30 << 20))

        done = subprocess.run(
            command("complete", "-p", "A"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            preexec_fn=limit,
            timeout=TIMEOUT,
        )
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        self.assertRegex(done.stderr, rb"memory|reserve|thread")

    def test_little_lockable_memory_does_not_matter(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))

        done = subprocess.run(
            command("complete", "-p", "A", "-n", "1"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(),
            preexec_fn=limit,
            timeout=TIMEOUT,
        )
        self.assertEqual((done.returncode, done.stderr), (0, b""))


@unittest.skipUnless(os.path.exists("/proc/self/maps"), "needs Linux's /proc")
class Loading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name) / "large"
        self.weights = write_checkpoint(self.model, [(4, 1024)] * 8, 1024, 64, 100_000)
        self.size = self.weights.stat().st_size

    def stop_while_loading(self, stderr, *options):
        """The program, stopped (SIGSTOP) while it loads the model of this test."""
        arguments = command(
            "complete", "-m", self.model, "--ids", "1", "--json", "-n", 0, "-t", 1, *options
        )
        for _ in range(ATTEMPTS):
            child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(TERM="xterm"),
            )
            self.addCleanup(child.stdout.close)
            if child.stderr:
                self.addCleanup(child.stderr.close)
            maps = pathlib.Path(f"/proc/{child.pid}/maps")
            while child.poll() is None:
                if self.weights.name in maps.read_text(errors="replace"):
                    child.send_signal(signal.SIGSTOP)
                    if self.weights.name in maps.read_text(errors="replace"):
                        return child
                    child.send_signal(signal.SIGCONT)
                    break
            child.wait(TIMEOUT)
        self.fail("no attempt met the program while it was loading")

    def test_a_file_that_shrinks_while_it_is_read(self):
        child = self.stop_while_loading(subprocess.PIPE)
        os.truncate(self.weights, 4096)
        child.send_signal(signal.SIGCONT)
        err = child.stderr.read().decode()
        self.assertEqual(child.wait(TIMEOUT), 1, err)
        self.assertEqual(err.count("\n"), 1)
        self.assertIn(f"openelm: error: {self.model}: a file became shorter", err)

    def test_ctrl_c(self):
        child = self.stop_while_loading(subprocess.PIPE)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.wait(TIMEOUT), 130)
        self.assertEqual(child.stdout.read() + child.stderr.read(), b"")

    def shown_on_terminal(self, *options):
        ours, theirs = pty.openpty()
        child = self.stop_while_loading(theirs, *options)
        time.sleep(0.5)  # long enough for a bar to be worth its while
        child.send_signal(signal.SIGCONT)
        child.wait(TIMEOUT)
        # The end of what was written stays readable as long as we hold the other side.
        os.write(theirs, b"END")
        shown = b""
        while not shown.endswith(b"END"):
            shown += os.read(ours, 4096)
        os.close(ours)
        os.close(theirs)
        return shown.decode()

    def test_progress_on_a_terminal_only(self):
        shown = self.shown_on_terminal()
        self.assertRegex(shown, r"\rLoading large \[[#.]{30}\] \d+%")
        self.assertTrue(shown.endswith("\r\x1b[KEND"), shown)  # it is removed
        self.assertEqual(self.shown_on_terminal("-q"), "END")
        child = self.stop_while_loading(subprocess.PIPE)
        time.sleep(0.5)
        child.send_signal(signal.SIGCONT)
        self.assertEqual(child.stderr.read(), b"")
        child.wait(TIMEOUT)


if __name__ == "__main__":
    unittest.main()
