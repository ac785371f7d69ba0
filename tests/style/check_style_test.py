"""Each rule of check_style.py catches what it is there for."""

import pathlib
import tempfile
import unittest

import check_style

GOOD = """#include "model/forward.h"

#include <vector>

#include <unistd.h>

#include <openelm/config.h>

#include "base/float16.h"
#include "kernels/kernels.h"

int main() { return 0; }
"""


class CheckStyle(unittest.TestCase):
    def faults(self, name: str, text: str):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for top in check_style.TREES:
                (tree / top).mkdir()
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, encoding="utf-8")
            return list(check_style.faults(tree))

    def assert_fault(self, name: str, text: str, words: str):
        found = self.faults(name, text)
        self.assertTrue(any(words in fault for fault in found), f"{words!r} not in {found}")

    def test_good_file_passes(self):
        self.assertEqual(self.faults("src/model/forward.cpp", GOOD), [])

    def test_layers(self):
        self.assert_fault(
            "src/base/a.cpp", '#include "model/forward.h"\n', "must not include model"
        )
        self.assert_fault(
            "src/text/a.cpp", '#include "parallel/pool.h"\n', "must not include parallel"
        )
        self.assert_fault(
            "src/model/a.cpp", '#include "forward.h"\n', "does not begin with a folder"
        )

    def test_restricted_headers(self):
        self.assert_fault(
            "src/model/a.cpp", "#include <nlohmann/json.hpp>\n", "may be used only in"
        )
        self.assert_fault("src/text/a.cpp", "#include <sentencepiece_processor.h>\n", "only in")
        self.assert_fault("src/runtime/a.cpp", "#include <spdlog/spdlog.h>\n", "only in src/cli/")
        self.assert_fault("src/model/a.cpp", "#include <immintrin.h>\n", "only in src/kernels/")
        self.assert_fault("src/cli/a.cpp", "#include <gtest/gtest.h>\n", "only in tests/")

    def test_public_headers(self):
        text = '#pragma once\n#include "base/utf8.h"\n'
        self.assert_fault("include/openelm/a.h", text, "public headers include")

    def test_order(self):
        text = "#include <openelm/config.h>\n\n#include <vector>\n"
        self.assert_fault("src/model/a.cpp", text, "out of order")

    def test_lengths(self):
        self.assert_fault("tools/a.py", "x = 1\n" * 421, "421 lines")
        self.assert_fault("src/base/a.cpp", "// " + "x" * 100 + "\n", "longer than 100 columns")

    def test_words(self):
        self.assert_fault("cmake/a.cmake", "set(x -ffast-" + "math)\n", "liberties")
        self.assert_fault("cmake/a.cmake", "set(x -march=" + "native)\n", "any CPU")
        self.assert_fault("src/base/a.cpp", "// TO" + "DO: more\n", "finish it")
        self.assert_fault("README.md", "see /wor" + "k/main\n", "path of one machine")

    def test_names(self):
        self.assert_fault("src/base/string_utils.cpp", "\n", "name a file")

    def test_header_guard(self):
        self.assert_fault("src/base/a.h", "int f();\n", "no #pragma once")

    def test_format(self):
        if check_style.clang_format() is None:
            self.skipTest("clang-format 14 is not installed")
        self.assert_fault("src/base/a.cpp", "int  f( );\n", "not as clang-format")


if __name__ == "__main__":
    unittest.main()
