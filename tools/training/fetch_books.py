"""Fetches the books that books.json lists, one bare git repository each, from GITenberg on GitHub.

A repository that is there already is left as it is, so an interrupted run can be repeated.
"""

import argparse
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mirror", type=pathlib.Path, help="folder to put NUMBER.git into")
    parser.add_argument("--base", default="https://github.com", help="where the repositories are")
    args = parser.parse_args()

    args.mirror.mkdir(parents=True, exist_ok=True)
    for book in json.loads((HERE / "books.json").read_text(encoding="utf-8")):
        target = args.mirror / f"{book['gutenberg']}.git"
        if target.exists():
            continue
        partial = target.with_suffix(".partial")
        url = f"{args.base}/{book['repository']}"
        subprocess.run(["git", "clone", "-q", "--bare", "--depth", "1", url, partial], check=True)
        partial.rename(target)
        print(book["gutenberg"], book["title"], flush=True)


if __name__ == "__main__":
    main()
