"""Builds the corpus of tales from the books that fetch_books.py fetched.

Written to OUT: train.jsonl, valid.jsonl and test.jsonl, one {"title", "text", "book"} a line, a
tale or chapter each; valid.txt and test.txt, the same as plain text, for perplexity; SOURCES.json
with the books, their sizes and the titles held out.

Held out are whole tales, about 1 % of the characters each for validation and test, by a seeded draw
among those that share no more than 3 % of their 8-word sequences with any other tale.
"""

import argparse
import hashlib
import json
import pathlib
import random
import re
import subprocess
from collections import Counter

from tales import tales, why_not

HERE = pathlib.Path(__file__).resolve().parent
SHORTEST = 600  # characters of a tale, unless books.json says otherwise
HELD_OUT_SHARE = 0.01
# Authors of held-out tales died in this year or before, so that their texts are free nearly
# everywhere: they may be copied into test suites.
HELD_OUT_LAST_DEATH = 1955

# Tales with words that a default model for everybody should not have learned are left out whole.
REFUSED = re.compile(
    r"\b(?:nigg\w+|negro\w*|dark(?:y|ies|ey|eys)|pickanin\w+|golliwog\w*|blackamoor\w*|"
    r"chinam[ae]n|coolie\w*|squaws?|redskins?|jew|jews|jewish|jewess|jew's|gipsy|gipsies|gypsy|"
    r"gypsies|hottentot\w*|kaffir\w*|half-caste|mulatto\w*|injuns?|cannibals?|rape[ds]?|whore\w*|"
    r"bastard\w*|bitch\w*)\b",
    re.I,
)

# Words that begin with an apostrophe, which is then no quotation mark.
ELISION = (
    r"(?:tis|twas|twere|twill|em|twould|tisn|twasn|til|till|bout|cause|un|ere|im|er|is|ud|n)\b"
)


def double_quotes(paragraph):
    """British 'single' quotation marks to "double" ones, inner double ones to single."""
    apostrophe, inner = "\x02", "\x01"
    s = re.sub(r"(?<=\w)'(?=\w)", apostrophe, paragraph)  # don't
    s = re.sub(rf"(?<![\w'\"])'(?={ELISION})", apostrophe, s)  # 'tis
    s = s.replace('"', inner)
    out, depth = [], 0
    for i, c in enumerate(s):
        before = s[i - 1] if i else " "
        after = s[i + 1] if i + 1 < len(s) else " "
        if c != "'":
            out.append(c)
        elif before in " \n([-" + inner and after not in " \n":
            out.append('"')
            depth += 1
        elif before in ".,!?;:-)" + inner or (
            depth > 0 and not before.isspace() and not after.isalnum() and before != "s"
        ):
            out.append('"')
            depth -= 1
        else:
            out.append("'")
    return "".join(out).replace(inner, "'").replace(apostrophe, "'")


def book_text(git_dir, name):
    raw = subprocess.run(
        ["git", f"--git-dir={git_dir}", "show", f"HEAD:{name}"], capture_output=True, check=True
    ).stdout
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", errors="replace").replace("\ufffd", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def has_single_quotes(text):
    """Whether speech stands in single quotation marks."""
    thousands = max(1, len(re.findall(r"\w+", text))) / 1000
    single = len(re.findall(r"(?<![\w'])'[A-Z]", text)) / thousands
    double = len(re.findall(r'(?<!\w)"[A-Z]', text)) / thousands
    return single > 3 and single > double


def tales_of(book, mirror, dropped):
    kept = []
    for tale in tales(book_text(mirror / f"{book['gutenberg']}.git", book["file"])):
        why = why_not(tale, book.get("shortest", SHORTEST))
        if why is None and (REFUSED.search(tale.text) or REFUSED.search(tale.title)):
            why = "refused"
        if why:
            dropped[why] += 1
        else:
            kept.append(tale)
    single = has_single_quotes("\n\n".join(t.text for t in kept))
    for tale in kept:
        text = tale.text
        if single:
            text = "\n\n".join(double_quotes(p) for p in text.split("\n\n"))
        yield {"title": tale.title, "text": text, "book": book["gutenberg"]}


def shingles(text, n=8):
    """The text's sequences of n words, as hashes that do not vary from run to run."""
    words = re.findall(r"[a-z']+", text.lower())
    grams = (" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    return {hashlib.blake2b(g.encode(), digest_size=8).digest() for g in grams}


def without_repeats(docs, dropped):
    """Drops the tales that another, longer one has in the same words; yields (doc, shingles)."""
    seen, unique = set(), []
    for doc in sorted(docs, key=lambda d: -len(d["text"])):
        own = shingles(doc["text"])
        if len(own & seen) > 0.35 * max(1, len(own)):
            dropped["duplicate"] += 1
            continue
        seen |= own
        unique.append((doc, own))

    def order(item):
        doc = item[0]
        return doc["book"], hashlib.sha256((doc["title"] + doc["text"]).encode()).hexdigest()

    return sorted(unique, key=order)


def split(docs, died):
    """{"train": [...], "valid": [...], "test": [...]} of [(doc, shingles)]."""
    count = Counter()
    for _, own in docs:
        count.update(own)
    wanted = HELD_OUT_SHARE * sum(len(doc["text"]) for doc, _ in docs)
    chosen, size, per_book = {}, {"valid": 0, "test": 0}, Counter()
    order = list(range(len(docs)))
    random.Random(20240607).shuffle(order)
    for i in order:
        if all(v >= wanted for v in size.values()):
            break
        doc, own = docs[i]
        shared = sum(count[x] > 1 for x in own) / max(1, len(own))
        fits = 1800 <= len(doc["text"]) <= 16000 and shared <= 0.03 and doc["title"]
        if not fits or per_book[doc["book"]] >= 2 or died[doc["book"]] > HELD_OUT_LAST_DEATH:
            continue
        name = "valid" if size["valid"] <= size["test"] else "test"
        chosen[i] = name
        per_book[doc["book"]] += 1
        size[name] += len(doc["text"])
    parts = {"train": [], "valid": [], "test": []}
    for i, (doc, _) in enumerate(docs):
        parts[chosen.get(i, "train")].append(doc)
    return parts


def write(parts, books, out):
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        with open(out / f"{name}.jsonl", "w", encoding="utf-8") as f:
            f.writelines(json.dumps(doc, ensure_ascii=False) + "\n" for doc in part)
        if name != "train":
            text = "\n\n\n".join(f"{doc['title']}\n\n{doc['text']}" for doc in part)
            (out / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    sources = []
    for book in books:
        row = dict(book)
        for name, part in parts.items():
            own = [doc for doc in part if doc["book"] == book["gutenberg"]]
            row[f"{name}_tales"], row[f"{name}_chars"] = len(own), sum(len(d["text"]) for d in own)
            if name != "train":
                row[f"{name}_titles"] = [d["title"] for d in own]
        sources.append(row)
    text = json.dumps({"books": sources}, indent=1, ensure_ascii=False)
    (out / "SOURCES.json").write_text(text + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mirror", type=pathlib.Path, help="folder that fetch_books.py filled")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--books", type=pathlib.Path, default=HERE / "books.json")
    args = parser.parse_args()

    books = json.loads(args.books.read_text(encoding="utf-8"))
    dropped = Counter()
    docs = [doc for book in books for doc in tales_of(book, args.mirror, dropped)]
    died = {book["gutenberg"]: book["author_died"] for book in books}
    parts = split(without_repeats(docs, dropped), died)
    write(parts, books, args.out)
    for name, part in parts.items():
        print(name, len(part), "tales", sum(len(d["text"]) for d in part), "characters")
    print("dropped", dict(dropped))


if __name__ == "__main__":
    main()
