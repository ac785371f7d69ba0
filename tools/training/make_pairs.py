"""Makes question/answer pairs for fine-tuning out of the corpus, by script.

Every answer is text of the corpus, apart from the written replies of phrases.json to greetings and
to questions that are no request for a story. Questions name the creatures and people of the
answer's first sentences, or the tale's title, or give its beginning; "Go on." asks for a second
turn. Writes train.jsonl and valid.jsonl, {"turns": [[question, answer], ...]} a line; the
validation pairs come from the held-out tales.
"""

import argparse
import json
import pathlib
import random
import re
from collections import Counter

PHRASES = json.loads(pathlib.Path(__file__).with_name("phrases.json").read_text(encoding="utf-8"))
REQUESTS = PHRASES["requests"]
NOUNS = PHRASES["nouns"].split()
SINGULAR = {n: n for n in NOUNS} | PHRASES["irregular_plurals"]
for noun in NOUNS:
    SINGULAR.setdefault(noun + ("es" if noun[-1] in "sxh" else "s"), noun)

OPENING = re.compile(
    r"^(?:Once|One (?:day|morning|evening|night|time)|There (?:was|were|lived|once)|Long|"
    r"In (?:a|the|old|those)|A (?:long|certain|poor|king)|Many|It was|It happened|Upon a time|"
    r"Far)\b"
)


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun.replace("-", " ")


def nouns_in(text):
    """The listed nouns of a text, in order, repeated as they are."""
    words = (SINGULAR.get(w) for w in re.findall(r"[a-z]+", text.lower()))
    return [w for w in words if w]


def subjects(text):
    """The nouns of the first two sentences, those first that the text repeats."""
    start = re.match(r"(?:.+?[.!?][\"']?(?:\s|$)){1,2}", text[:240], re.S)
    named = list(dict.fromkeys(nouns_in(start.group() if start else text[:160])))
    count = Counter(nouns_in(text))
    return sorted(named, key=lambda noun: count[noun] < 2)


def take(paragraphs, start, low, high):
    """Paragraphs from `start` on with about `low` characters, less than `high`, and the number of
    the next one; None where they do not end like a passage."""
    taken, size, i = [], 0, start
    while i < len(paragraphs) and size < low and size + len(paragraphs[i]) <= high:
        taken.append(paragraphs[i])
        size += len(paragraphs[i])
        i += 1
    if size < low * 0.6 or not re.search(r"[.!?][\"')]*$", taken[-1]):
        return None
    return "\n\n".join(taken), i


def question_for(text, title, at_start, rng):
    """A request that the passage answers, or None."""
    who = subjects(text)
    if at_start and title and rng.random() < 0.2:
        return rng.choice(REQUESTS["title"]).format(t=title)
    if len(who) >= 2 and rng.random() < 0.45:
        return rng.choice(REQUESTS["two"]).format(a=article(who[0]), b=article(who[1]))
    if who:
        return rng.choice(REQUESTS["one"]).format(a=article(who[0]))
    return rng.choice(REQUESTS["any"]) if at_start else None


def passages(tale, rng, count):
    """Up to `count` pairs whose answers begin where the tale or one of its paragraphs does."""
    paragraphs = [p for p in tale["text"].split("\n\n") if p]
    inner = range(1, len(paragraphs) - 1)
    inner = [i for i in inner if len(paragraphs[i]) > 70 and paragraphs[i][0].isalpha()]
    openings = [i for i in inner if OPENING.match(paragraphs[i])]
    rng.shuffle(inner)
    for start in list(dict.fromkeys([0] + openings[:2] + inner))[:count]:
        low = rng.choice([150, 250, 400, 600])
        passage = take(paragraphs, start, low, 800)
        if not passage:
            continue
        text, following = passage
        question = question_for(text, tale["title"], start == 0, rng)
        if not question:
            continue
        turns = [[question, text]]
        if low <= 400 and rng.random() < 0.12:
            more = take(paragraphs, following, 200, 500)
            if more:
                turns.append([rng.choice(REQUESTS["next"]), more[0]])
        yield {"turns": turns}


def continuation(tale, rng):
    """At most one pair: a sentence from anywhere in the tale, and what follows it."""
    paragraphs = [p for p in tale["text"].split("\n\n") if p]
    start = rng.randrange(max(1, len(paragraphs) - 2))
    passage = take(paragraphs, start, rng.choice([350, 500, 700]), 1100)
    if not passage or len(paragraphs[start]) < 90:
        return
    text = passage[0]
    sentence = re.match(r"(.{40,300}?[.!?][\"']?)\s+(?=[\"'A-Z])", text, re.S)
    if sentence and "\n" not in sentence.group(1) and len(text) - sentence.end() > 150:
        question = rng.choice(REQUESTS["continue"]).format(s=sentence.group(1))
        yield {"turns": [[question, text[sentence.end() :]]]}


def talk(rng):
    """A short exchange that is no story."""
    kinds = PHRASES["talk"]
    kind = rng.choices(kinds, weights=[k["share"] for k in kinds])[0]
    said = rng.choice(kind["said"])
    if rng.random() < 0.25:
        said = said.lower()
    return {"turns": [[said, rng.choice(kind["answers"])]]}


def pairs(tales, rng):
    rows = []
    for tale in tales:
        rows += passages(tale, rng, 7)
        rows += passages(tale, rng, 1)  # its opening once more, asked for in another way
        rows += continuation(tale, rng)
    rows += [talk(rng) for _ in range(len(rows) // 6)]
    rng.shuffle(rows)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    for name, parts in (("train", ["train"]), ("valid", ["valid", "test"])):
        tales = []
        for part in parts:
            lines = (args.corpus / f"{part}.jsonl").read_text(encoding="utf-8").splitlines()
            tales += map(json.loads, lines)
        rows = pairs(tales, random.Random(7))
        with open(args.out / f"{name}.jsonl", "w", encoding="utf-8") as f:
            f.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        print(name, len(rows), "pairs")


if __name__ == "__main__":
    main()
