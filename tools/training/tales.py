"""Cuts the plain text of a book into tales or chapters: tales(raw) gives a list of Tale.

Headings cut the book; front and back matter, notes and credits are dropped; the hard-wrapped lines
of prose are joined, the lines of verse kept.
"""

import dataclasses
import re

from gutenberg_text import ascii_fold, blocks, strip_gutenberg, strip_markup

ROMAN = r"(?=[IVXLC])(?:C{0,3})(?:XC|XL|L?X{0,4})(?:IX|IV|V?I{0,4})"
ORDINAL = (
    r"ONE|TWO|THREE|FOUR|FIVE|SIX|SEVEN|EIGHT|NINE|TEN|ELEVEN|TWELVE|FIRST|SECOND|THIRD|FOURTH|"
    r"THIRTEEN|FOURTEEN|FIFTEEN|SIXTEEN|SEVENTEEN|EIGHTEEN|NINETEEN|"
    r"TWENTY(?:[- ](?:ONE|TWO|THREE|FOUR|FIVE|SIX|SEVEN|EIGHT|NINE))?|THIRTY"
)
# A heading that is a number and nothing else.
NUMBER = re.compile(
    r"^(?:(?:CHAPTER|PART|BOOK|STORY|TALE|SECTION|FABLE|No\.?)\s+)?(?:the\s+)?"
    rf"(?:{ROMAN}|\d{{1,3}}|{ORDINAL})\.?[:.\-]*$",
    re.I,
)
NUMBER_PREFIX = re.compile(
    r"^\d{1,3} (?=[A-Z])|"
    rf"^(?:(?:CHAPTER|STORY|FABLE)\s+)?(?:{ROMAN}|\d{{1,3}})\s*[.:)\-]+\s+(?=[\"'A-Z])|"
    rf"^CHAPTER\s+(?:{ROMAN}|\d{{1,3}})\.?\s+(?=[\"'A-Z])"
)
# Words that titles leave without a capital, always and often.
SMALL = set("a an the and or of in on to at by for from with as but into nor".split())
PLAIN = SMALL | set(
    "who that was is it his her their he she they my how why what when where had out up did not "
    "be are were over upon its so than no".split()
)
DROP_TITLE = re.compile(
    r"^(?:the )?(?:preface|introduct|contents|table of contents|illustrations|list of|notes?\b|"
    r"footnotes?|index|glossary|dedicat|advert|author'?s? (?:note|preface)|"
    r"to (?:my|the|all) (?:readers?|children|reader|young|little)|transcriber|appendix|foreword|"
    r"bibliograph|publisher|epilogue|prologue|books? by|by the same|works by|acknowledg|errata|"
    r"sources|references|parallels|a (?:letter|note|word) to|note|finis$|the end$|"
    r"end of the project|colophon|produced by|copyright|other books|remarks|about the author|"
    r"full list|oyez|l\. frank baum|pronounc|afterword|envoy|uniform with|cover|volume|vol\.|"
    r"suggestions|prehistoric man|jolly books|full[- ]page|printed in|prefatory|page$)",
    re.I,
)
BACK_MATTER = re.compile(
    r"^(?:notes and references|footnotes? to|glossary|index|appendix|suggestions to teachers|"
    r"a word to grown ups|by the same author|transcriber's notes?|jolly books)",
    re.I,
)
JUNK = re.compile(
    r"[|{}$*<>\\^~#@]|^\[|12mo|\(Servian Story\)|Full page line-art|^Page \d+,|changed to \"|"
    r"Printed (?:by|in)|PUBLISHERS|Publishers,|Street, (?:New York|London)|New York \d|"
    r"^Frontispiece|^Copyright|COPYRIGHT|^Transcriber"
)
LEGAL = re.compile(
    r"Gutenberg|www\.|http:|\be-?text\b|\bcopyright|Distributed Proofread|\bISBN\b", re.I
)
PARAGRAPH_END = re.compile(r"(?:[.!?:;,]|--)[\"')]*$")


@dataclasses.dataclass
class Tale:
    title: str
    text: str  # paragraphs, one blank line between them
    prose: float  # share of prose among the characters, the rest being verse


def capitalised(words):
    """Whether nearly all words that titles write with a capital have one."""
    big = [w for w in words if w.lower() not in PLAIN]
    return bool(big) and sum(w[0].isupper() for w in big) >= 0.75 * len(big)


def is_heading(before, lines, after, under_number):
    """Of a block of lines with so many blank lines before and after it. `under_number`: the block
    stands right below a heading that is a bare number."""
    if len(lines) > 4 or before < 1:
        return False
    s = " ".join(x.strip() for x in lines)
    words = re.findall(r"[A-Za-z][A-Za-z'-]*", s)
    if under_number and len(s) < 70 and not re.search(r"[.,:;\"]$", s) and s[:1].isupper():
        if re.search(r"[a-z]", s) and capitalised(words):
            return True
    if not re.search(r"[A-Za-z]", s) or len(s) > 110:
        return False
    if NUMBER.match(s):
        return True
    letters = re.sub(r"[^A-Za-z]", "", s)
    if len(letters) > 1 and letters.isupper():
        if not (s[0] in "\"'" and s[-1] in "\"'" and before < 2):
            return before >= 2 or after >= 1
    if before < 2 or s[-1] in ",;:-" or s[0] in "\"'(" or re.search(r"[.!?]\"?'?$", s):
        # A title may end in one full stop, if it is short and well apart.
        if not (before >= 3 and s[-1] in ".!?" and len(s) < 70 and s[0].isupper()):
            return False
    return 0 < len(words) <= 16 and capitalised(words) and words[0][0].isupper()


def title_case(s):
    """ "THE FOX AND THE GOOSE." to "The Fox and the Goose"."""
    s = re.sub(r"\s+", " ", s).strip(" .:-*")
    if not re.sub(r"[^A-Za-z]", "", s).isupper():
        return s
    out = []
    for i, word in enumerate(s.lower().split(" ")):
        if i == 0 or re.sub(r"[^a-z']", "", word) not in SMALL:
            word = re.sub(r"[a-z]", lambda m: m.group().upper(), word, count=1)
            word = re.sub(r"-([a-z])", lambda m: "-" + m.group(1).upper(), word)
        out.append(word)
    s = " ".join(out)
    return re.sub(r"\b(Ii|Iii|Iv|Vi|Vii|Viii|Ix)\b", lambda m: m.group().upper(), s)


def clean_title(s):
    """Without numbers and notes; empty when it is no good title."""
    s = re.sub(rf"^(?:Chapter|Legend) +(?:{ROMAN}|\d+)[.:]? *", "", s)
    s = re.sub(r"^(?:II|III|IV|V|VI|VII|VIII|IX|X|XI|XII|XIII|XIV|XV) (?=[A-Z])", "", s)
    s = re.sub(r" *[(\[](?:From|A |An |Continued|Adapted)[^)\]]*[)\]]$", "", s)
    return "" if s.count('"') % 2 or len(s) > 80 or s.endswith(",") else s


def indent(line):
    return len(line) - len(line.lstrip())


def is_verse(lines):
    if len(lines) < 2:
        return False
    widths = [len(x.strip()) for x in lines]
    if min(indent(x) for x in lines) >= 2 and max(widths) < 62:
        return True
    body = widths[:-1]
    return max(body) < 52 and sum(body) / len(body) < 46


def tidy(s):
    """One paragraph, printable ASCII, with even spacing and quotation marks."""
    s = "".join(c for c in s if c == "\n" or 32 <= ord(c) < 127)
    s = re.sub(r"-{3,}", "--", s)
    s = re.sub(r"\s*--\s*(?=\w)", "--", s)
    s = re.sub(r"\.(?: \.){2,}", "...", s)
    s = re.sub(r"\.{4,}", "...", s)
    s = re.sub(r"``|''", '"', s).replace("`", "'").replace(" & ", " and ")
    s = re.sub(r" ?\[[^\[\]]{1,60}\]", "", s)
    s = re.sub(r" +([,;:!?.])(?![.\d])", r"\1", s)
    return re.sub(r"[ \t]{2,}", " ", s).strip()


def is_credit(p):
    """The note of a source under a tale: "[From the Portuguese.]", "Grimm.", "(Swahili Tales.)"."""
    if re.match(r"^[\[(].*[\])]\.?$", p, re.S) and len(p) < 200:
        return True
    if re.match(r"^(?:From|Adapted from|Translated from) ['\"(]?[A-Z]", p) and len(p) < 140:
        return True
    words = re.findall(r"[A-Za-z']+", p)
    joining = ("de", "and", "of", "the", "von", "d")
    return (
        0 < len(words) <= 6
        and not p.startswith(("'", '"'))
        and not p.endswith(("!", "?"))
        and all(w[0].isupper() or w.lower() in joining for w in words)
    )


def first_words(p):
    """ "ONCE UPON A TIME there was" to "Once upon a time there was"."""
    m = re.match(r"^(\"?)((?:[A-Z][A-Z'-]*[ ,]+)*[A-Z][A-Z'-]+)\b(?=.*[a-z])", p, re.S)
    if not m or len(re.sub("[^A-Z]", "", m.group(2))) < 2:
        return p
    words, rest = m.group(2).split(" "), p[m.end() :]
    out = []
    for i, word in enumerate(words):
        name = re.search(rf"\b{re.escape(word.strip(',').capitalize())}\b", rest)
        title = len(words) < 5 and word in ("MR.", "MRS.", "DR.", "OLD")
        if word != "I":
            word = word.capitalize() if i == 0 or name or title else word.lower()
        out.append(word)
    return m.group(1) + " ".join(out) + rest


def without_indent(book):
    """A book whose lines nearly all are indented, moved to the left."""
    indents = sorted(indent(x) for _, lines in book for x in lines)
    cut = indents[len(indents) // 5] if indents else 0
    if cut < 2:
        return book
    return [(n, [x[min(cut, indent(x)) :] for x in lines]) for n, lines in book]


def sections(book):
    """[(title, [(is verse, paragraph)])] between the headings of a book's blocks."""
    widths = sorted(len(x) for _, lines in book for x in lines)
    narrow = bool(widths) and widths[len(widths) * 9 // 10] < 56
    done, current, heads = [], None, []
    for i, (before, lines) in enumerate(book):
        after = book[i + 1][0] if i + 1 < len(book) else 3
        under_number = current is None and bool(heads) and bool(NUMBER.match(heads[-1].strip()))
        if is_heading(before, lines, after, under_number):
            if current and current[1]:
                done.append(current)
                heads = []
            current = None
            heads.append(" ".join(x.strip() for x in lines))
            late = len(done) > 5 and i > len(book) // 2
            if late and BACK_MATTER.match(heads[-1].strip(" .:")):
                break
            continue
        if current is None:
            titles = [NUMBER_PREFIX.sub("", h) for h in heads if not NUMBER.match(h.strip())]
            current = (title_case(titles[-1]) if titles else "", [])
            heads = []
        joined = re.sub(r"[ \t]+", " ", " ".join(x.strip() for x in lines))
        if re.match(r"^(?:\(\d+\)|\[\d+\]|\*)", joined) or not re.search(r"[A-Za-z]{2}", joined):
            continue
        end = re.match(r"^(?:THE END|FINIS|Footnotes?:|Transcriber)", joined, re.I)
        if end and len(joined) < 200:
            continue
        if is_verse(lines) and not (narrow and indent(lines[0]) == 0):
            verse = "\n".join(re.sub(r"\s+", " ", x.strip()) for x in lines)
            current[1].append((True, tidy(verse)))
        else:
            current[1].append((False, tidy(joined)))
    if current and current[1]:
        done.append(current)
    return done


def tales(raw):
    """The tales of one raw Gutenberg text."""
    out = []
    book = without_indent(blocks(strip_markup(ascii_fold(strip_gutenberg(raw)))))
    for title, paragraphs in sections(book):
        while paragraphs and is_credit(paragraphs[-1][1]):
            paragraphs.pop()
        paragraphs = [(verse, p) for verse, p in paragraphs if p and not JUNK.search(p)]
        if paragraphs:
            first = paragraphs[0][1]
            if len(first) < 60 and re.match(r"^(?:\[|\()?[A-Z][A-Za-z', -]+[\])]?$", first):
                title = title or first  # a title that was not seen as one
                paragraphs.pop(0)
        if paragraphs:
            paragraphs[0] = (paragraphs[0][0], first_words(paragraphs[0][1]))
        total = sum(len(p) for _, p in paragraphs) or 1
        prose = sum(len(p) for verse, p in paragraphs if not verse)
        text = "\n\n".join(p for _, p in paragraphs)
        out.append(Tale(clean_title(title), text, prose / total))
    return out


def why_not(tale, shortest):
    """Why a section is not a tale ("short", "legal", ...), or None when it is one."""
    if DROP_TITLE.match(tale.title):
        return "title"
    if len(tale.text) < shortest:
        return "short"
    if tale.prose < 0.55:
        return "verse"
    paragraphs = tale.text.split("\n\n")
    if sum(bool(PARAGRAPH_END.search(p)) for p in paragraphs) < 0.7 * len(paragraphs):
        return "list"
    return "legal" if LEGAL.search(tale.text) else None
