"""--pin keeps threads where they are and changes nothing else."""

import os
import sys
import unittest

from program import succeed

COMPLETE = ["complete", "-p", "Once", "-n", "8", "--seed", "1", "-t", "2"]


@unittest.skipUnless(sys.platform == "linux", "threads can be pinned on Linux only")
class Pin(unittest.TestCase):
    def test_the_text_is_the_same(self):
        self.assertEqual(succeed(*COMPLETE, "--pin").out, succeed(*COMPLETE).out)

    def test_more_threads_than_cpus_share_them(self):
        succeed("complete", "-p", "Once", "-n", "2", "-t", (os.cpu_count() or 1) + 1, "--pin")


if __name__ == "__main__":
    unittest.main()
