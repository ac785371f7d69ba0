"""Speed where CPUs are scarce: more threads than CPUs, and a quota of the control group.

What is compared are the best of several runs each, so that other programs on the machine cannot
make the difference alone.
"""

import os
import pathlib
import tempfile
import time
import unittest

from program import succeed
from sparse_checkpoint import write_checkpoint

ATTEMPTS = 6
PERIOD = 100_000  # microseconds


def best_speeds(model, threads, cpus, before=lambda: None):
    def prepare():
        os.sched_setaffinity(0, cpus)
        before()

    arguments = ["bench", "-m", model, "-p", 256, "-n", 64, "-r", 3, "--output", "json"]
    rows = succeed(*arguments, "-t", threads, before=prepare).json
    return [row["tokens_per_second"]["max"] for row in rows]


class ControlGroup:
    """A new group of this process's, with a quota; either version of control groups."""

    def __init__(self, cpus):
        self.folder = None
        for parent, version in self.parents():
            folder = parent / f"openelm-test-{os.getpid()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                quota = round(cpus * PERIOD)
                if version == 2:
                    (folder / "cpu.max").write_text(f"{quota} {PERIOD}")
                else:
                    (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
                    (folder / "cpu.cfs_quota_us").write_text(str(quota))
            except OSError:
                folder.rmdir()
                continue
            self.folder = folder
            return
        raise unittest.SkipTest("no control group with a CPU quota can be made here (needs root)")

    @staticmethod
    def parents():
        """Where the controller of CPUs is at hand already: groups of this process, inmost first."""
        mounts = {}
        for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
            _, folder, kind, options, *_ = line.split()
            if kind == "cgroup2" or (kind == "cgroup" and "cpu" in options.split(",")):
                mounts[kind] = pathlib.Path(folder)
        for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            version = 2 if controllers == "" else 1
            mount = mounts.get("cgroup2" if version == 2 else "cgroup")
            if mount is None or (version == 1 and "cpu" not in controllers.split(",")):
                continue
            for group in [path, *map(str, pathlib.PurePath(path).parents)]:
                folder = mount / group.lstrip("/")
                control = folder / "cgroup.subtree_control"
                if version == 1 or (control.exists() and "cpu" in control.read_text().split()):
                    yield folder, version

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self):
        for _ in range(50):
            try:
                return self.folder.rmdir()
            except OSError:  # the kernel takes a moment to see that it is empty
                time.sleep(0.1)


@unittest.skipUnless(hasattr(os, "sched_setaffinity"), "CPUs cannot be chosen on this system")
class ScarceCpus(unittest.TestCase):
    def setUp(self):
        self.cpus = set(sorted(os.sched_getaffinity(0))[:2])
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model = pathlib.Path(folder.name) / "model"
        # A token reads 98 MB: milliseconds, as those of real models.
        write_checkpoint(self.model, [(8, 2048)] * 8, 768, 64, 4096)

    def assert_share(self, share, plentiful, scarce):
        """Prompts and generation reach this share of the speed with plenty of CPU."""
        best = [[0, 0], [0, 0]]
        for _ in range(ATTEMPTS):
            for which, measure in enumerate((plentiful, scarce)):
                best[which] = [max(pair) for pair in zip(best[which], measure())]
            if all(slow >= share * fast for fast, slow in zip(*best)):
                return
        self.fail(f"tokens/s of prompt and generation: {best[0]} with enough CPU, {best[1]}")

    def test_more_threads_than_cpus(self):
        self.assert_share(
            0.5,
            lambda: best_speeds(self.model, len(self.cpus), self.cpus),
            lambda: best_speeds(self.model, 4 * len(self.cpus), self.cpus),
        )

    def test_half_of_the_cpus_by_quota(self):
        group = ControlGroup(len(self.cpus) / 2)
        self.addCleanup(group.remove)
        self.assert_share(
            0.3,
            lambda: best_speeds(self.model, len(self.cpus), self.cpus),
            lambda: best_speeds(self.model, len(self.cpus), self.cpus, group.enter),
        )


if __name__ == "__main__":
    unittest.main()
