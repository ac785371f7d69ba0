"""The plain text of a Project Gutenberg book, without what is not the book's own.

strip_gutenberg cuts Gutenberg's header, footer and licence; ascii_fold turns typography into plain
ASCII; strip_markup drops illustrations, footnotes, page numbers and emphasis marks; blocks splits
the rest at blank lines.
"""

import re
import unicodedata

START = re.compile(
    r"^\*\*\* ?START OF (?:THIS|THE) PROJECT GUTENBERG.*?\*\*\*[ \t]*$", re.M | re.S | re.I
)
OLD_START = re.compile(r"^\*END\*? ?THE SMALL PRINT.*$", re.M | re.I)
END = re.compile(
    r"^[ \t]*(?:\*\*\* ?END OF (?:THIS|THE) PROJECT GUTENBERG|"
    r"(?:End of )?(?:the |this )?Project Gutenberg(?:'s|\(TM\))? (?:Etext|EBook)? ?(?:of|is|,)|"
    r"End of (?:the |this )?Project Gutenberg|End of Project Gutenberg|"
    r"\*\*\* ?START: FULL LICENSE|The Project Gutenberg (?:Etext|EBook) of).*$",
    re.M | re.I,
)


def strip_gutenberg(t):
    """The text between the Gutenberg start and end markers."""
    m = START.search(t) or OLD_START.search(t)
    if m:
        t = t[m.end() :]
    half = len(t) // 2
    m = END.search(t, half)
    return t[: m.start()] if m else t


FOLDED = {
    "\u2018": "'",
    "\u2019": "'",
    "\u201a": "'",
    "\u201b": "'",
    "\u201c": '"',
    "\u201d": '"',
    "\u201e": '"',
    "\u00b4": "'",
    "\u2013": "-",
    "\u2014": "--",
    "\u2015": "--",
    "\u2212": "-",
    "\u2026": "...",
    "\u00a0": " ",
    "\u00c6": "Ae",
    "\u00e6": "ae",
    "\u0152": "Oe",
    "\u0153": "oe",
    "\u00d8": "O",
    "\u00f8": "o",
    "\u00df": "ss",
    "\u00ab": '"',
    "\u00bb": '"',
    "\u00a3": "L",
    "\u00d0": "D",
    "\u00f0": "d",
    "\u00de": "Th",
    "\u00fe": "th",
    "\u0142": "l",
    "\u0141": "L",
    "\ufeff": "",
    "\u200b": "",
    "\u00ad": "",
    "\u00b7": " ",
    "\u0131": "i",
}


def ascii_fold(t):
    """ASCII where a reader misses nothing by it; what is still beyond ASCII is dropped later."""
    t = "".join(FOLDED.get(c, c) for c in t)
    return "".join(c for c in unicodedata.normalize("NFKD", t) if not unicodedata.combining(c))


def strip_markup(t):
    """Without the marks that transcribers add."""
    t = re.sub(
        r"\[(?:Illustration|Illus|Plate|Sidenote|Decoration|Frontispiece|Music|Picture)\b"
        r"[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\]",
        " ",
        t,
        flags=re.I | re.S,
    )
    t = re.sub(
        r"^[ \t]*\[(?:Illustration|Illus)\b.*?(?=\n[ \t]*\n|\Z)", " ", t, flags=re.I | re.M | re.S
    )
    t = re.sub(
        r"^[ \t]*\[Footnote[^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*\][ \t]*$",
        "",
        t,
        flags=re.I | re.M | re.S,
    )
    t = re.sub(
        r"\[(?:Footnote|Transcriber|Note|FN|Pg|Page|Ed)\b[^\[\]]*\]", "", t, flags=re.I | re.S
    )
    t = re.sub(r"\[(?:\d+|[A-Z]|\*+|\#)\]", "", t)
    t = re.sub(r"(?<=[A-Za-z.,!?'\"])\(\d{1,2}\)", "", t)
    t = re.sub(r"\{\d+[a-z]?\}", "", t)
    t = re.sub(r"<[^<>\n]{1,40}>", "", t)
    t = re.sub(r"(?<![A-Za-z0-9])_(?=\S)|(?<=\S)_(?![A-Za-z0-9])", "", t)
    t = t.replace("_", "")
    t = re.sub(r"(?<!\w)=(?=\w)|(?<=[\w.,!?])=(?!\w)", "", t)
    t = re.sub(r"(?<!\w)\+(?=\w)|(?<=[\w.,!?])\+(?!\w)", "", t)
    t = re.sub(r"(?<=\w)\*+|\*+(?=\w)", "", t)
    return t


def blocks(t):
    """[(blank lines before, [lines])] of each run of lines without a blank one."""
    out, cur, blank = [], [], 0
    before = 3
    for line in t.split("\n"):
        line = line.rstrip().expandtabs(4)
        if not line.strip():
            if cur:
                out.append((before, cur))
                cur, blank = [], 0
            blank += 1
        else:
            if not cur:
                before = blank
            cur.append(line)
    if cur:
        out.append((before, cur))
    return out
