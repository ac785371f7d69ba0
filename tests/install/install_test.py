"""`cmake --install` gives a tree that works by itself: the program finds its bundled models, and a
program of another project finds the library with find_package(openelm).

Usage: install_test.py BUILD_FOLDER EXAMPLE_FOLDER CMAKE CXX_COMPILER [CXX_FLAGS]
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BUILD, EXAMPLE, CMAKE, COMPILER, FLAGS = (sys.argv[1:] + [""])[:5]


def run(*command, cwd=None):
    """The output of a command that must succeed, run without hints of where the models are."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENELM_")}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise AssertionError(f"{command} returned {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A space and a letter beyond ASCII, as home folders have them.
        cls.folder = tempfile.TemporaryDirectory(prefix="openelm inställ ")
        first = pathlib.Path(cls.folder.name) / "staging"
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix"
        run(CMAKE, "--install", BUILD, "--prefix", first)
        # Nothing in an installed tree may depend on where it was first put.
        first.rename(cls.prefix)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_program_finds_bundled_models(self):
        program = self.prefix / "bin" / "openelm"
        text = run(program, "complete", "-p", "Once upon a time", "-n", 20, "--seed", 1, cwd="/")
        self.assertGreater(len(text.split()), 5, text)

    def test_bundled_models_are_the_installed_ones(self):
        program = self.prefix / "bin" / "openelm"
        config = self.prefix / "share" / "openelm" / "models" / "openelm-tiny" / "config.json"
        good = config.read_text(encoding="utf-8")
        config.write_text("not a configuration", encoding="utf-8")
        try:
            with self.assertRaises(AssertionError) as failure:
                run(program, "inspect", cwd="/")
            self.assertIn(str(config), str(failure.exception))
        finally:
            config.write_text(good, encoding="utf-8")

    def test_another_project_uses_the_library(self):
        build = pathlib.Path(self.folder.name) / "example"
        run(
            CMAKE,
            "-S",
            EXAMPLE,
            "-B",
            build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={COMPILER}",
            f"-DCMAKE_CXX_FLAGS={FLAGS}",
        )
        run(CMAKE, "--build", build)
        model = self.prefix / "share" / "openelm" / "models" / "openelm-tiny"
        text = run(build / "storyteller", model, "Once upon a time")
        self.assertGreater(len(text.split()), 20, text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
