"""The built program, run as a user would: what the tests of the command line share.

Environment: OPENELM_PROGRAM (the binary), OPENELM_TEST_DATA, OPENELM_TEST_MODELS. Where
OPENELM_LLAMA_TOKENIZER names Llama 2's tokenizer.model, its ids are tested too.
"""

import dataclasses
import json
import os
import pathlib
import subprocess

PROGRAM = os.environ["OPENELM_PROGRAM"]
DATA = pathlib.Path(os.environ["OPENELM_TEST_DATA"])
CASES = DATA / "cases"
MODELS = pathlib.Path(os.environ["OPENELM_TEST_MODELS"])
TINY = MODELS / "openelm-tiny"
INSTRUCT = MODELS / "openelm-tiny-instruct"
LLAMA_TOKENIZER = os.environ.get("OPENELM_LLAMA_TOKENIZER")
TIMEOUT = 120

# Token ids of the bundled models' vocabulary.
BOS, EOS, NEWLINE, SPACE = 1, 2, 13, 4001


def byte_ids(text):
    """The byte pieces of a text, which the vocabulary may spell otherwise."""
    return [3 + byte for byte in text.encode()]


@dataclasses.dataclass
class Result:
    status: int
    out: bytes
    err: str

    @property
    def text(self):
        return self.out.decode()

    @property
    def json(self):
        return json.loads(self.out)


def environment(**changes):
    """This process's, without anything that steers the program; None removes a variable."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENELM_")}
    kept.pop("NO_COLOR", None)
    kept.update({k: v for k, v in changes.items() if v is not None})
    return kept


def command(*arguments):
    return [PROGRAM, *(a if isinstance(a, bytes) else str(a) for a in arguments)]


def run(*arguments, stdin=b"", env=None, cwd=None, before=None):
    """Runs to the end; `before` is called in the new process."""
    done = subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        env=env or environment(),
        cwd=cwd,
        timeout=TIMEOUT,
        preexec_fn=before,
    )
    return Result(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


def succeed(*arguments, **how):
    result = run(*arguments, **how)
    assert result.status == 0, f"{arguments}: exit {result.status}: {result.err}"
    return result


def complete_json(*arguments, **how):
    return succeed("complete", "--json", *arguments, **how).json


def tokenize(text, *arguments):
    return succeed("tokenize", "--json", *arguments, stdin=text.encode()).json["ids"]


def continuation(text):
    """Ids of a text that goes on after other text and begins with a line end."""
    space, *ids = tokenize(text)
    assert space == SPACE and ids[0] == NEWLINE, (space, ids)
    return ids


def force(ids):
    """Options that make any model generate these ids over and over again.

    Each bias is above the next; a token that was among the last ones chosen falls below all others.
    """
    assert len(set(ids)) == len(ids)
    options = ["--temperature", "0", "--repetition-window", len(ids) - 1]
    options += ["--presence-penalty", 5000]
    for rank, token in enumerate(ids):
        options += ["--logit-bias", f"{token}={10000 - 100 * rank}"]
    return options


def is_writing(pid, descriptor):
    """The process waits in write(descriptor, ...): the system call's first argument tells."""
    with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
        words = file.read().split()
    return len(words) > 2 and words[1] == hex(descriptor) and words[0] in ("1", "64")


def assert_one_line(test, result, status, *parts):
    """A failure is one line on stderr, says what is wrong, and leaves stdout empty."""
    test.assertEqual(result.status, status, result.err)
    test.assertEqual(result.err.count("\n"), 1, result.err)
    test.assertTrue(result.err.startswith("openelm: error: "), result.err)
    test.assertEqual(result.out, b"")
    for part in parts:
        test.assertIn(str(part), result.err)
