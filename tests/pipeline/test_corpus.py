"""Check the hand-written sentiment corpus in ``pipeline/Step2/demo_sst2_sentence``.

Every checking function takes the folder (or the parsed files) and returns a list of complaints,
so that the last tests can plant faults in a copy of the corpus and see that they are found.
"""

from __future__ import annotations

import csv
import re
import shutil
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "pipeline" / "Step2" / "demo_sst2_sentence"
SIZES = {"demo.tsv": 32, "train.tsv": 330, "dev.tsv": 110}
HEADER = "sentence\tlabel"
MIN_WORDS, MAX_WORDS = 4, 28
MEAN_WORDS = (11.0, 13.5)
MAX_JACCARD = 0.5
MAX_SAME_LABEL_RUN = 8
STOP_WORDS = frozenset(
    """a about after all am an and any are as at be been before but by can could did do does for
    from had has have he her him his how i if in into is it its just me my no nor not of off on
    or our out s she so some t than that the their them then there these they this those to too
    up very was we were what when where which who why will with would you your""".split()
)
WORD = re.compile(r"\w+(?:['’.,-]\w+)*")

Row = tuple[str, str]
Check = Callable[[Path], list[str]]


def words(sentence: str) -> list[str]:
    """The words of a sentence: 12,500 and open-air count as one word each, a dash as none."""
    return WORD.findall(sentence)


def content_words(sentence: str) -> frozenset[str]:
    """The lower-case word set without stop words (all words where nothing would be left)."""
    found = frozenset(re.findall(r"\w+", sentence.lower()))
    return (found - STOP_WORDS) or found


def read_rows(path: Path) -> list[Row]:
    """The (sentence, label) rows of one file, without its header."""
    with path.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE))
    for number, row in enumerate(rows, start=1):
        if len(row) != 2:
            raise ValueError(f"{path.name}:{number}: {len(row)} fields, expected 2")
    return [(row[0], row[1]) for row in rows[1:]]


def all_sentences(folder: Path) -> list[tuple[str, str]]:
    """Every sentence of the three files with the name of its file."""
    return [(name, text) for name in SIZES for text, _ in read_rows(folder / name)]


def check_format(folder: Path) -> list[str]:
    """UTF-8, LF only, the exact header, one trailing newline, one tab a line, no quotes."""
    bad = []
    for name in SIZES:
        text = (folder / name).read_bytes().decode("utf-8")
        if text.startswith("\ufeff") or "\r" in text:
            bad.append(f"{name}: byte order mark or carriage return")
        if not text.endswith("\n") or text.endswith("\n\n"):
            bad.append(f"{name}: not exactly one trailing newline")
        lines = text.removesuffix("\n").split("\n")
        if lines[0] != HEADER:
            bad.append(f"{name}: header is {lines[0]!r}")
        bad += [f"{name}: {ln!r}" for ln in lines if ln.count("\t") != 1 or '"' in ln]
    return bad


def check_counts(folder: Path) -> list[str]:
    """The right number of rows in each file, half of them per label, no other label."""
    bad = []
    for name, size in SIZES.items():
        labels = [label for _, label in read_rows(folder / name)]
        got = (len(labels), labels.count("0"), labels.count("1"))
        if got != (size, size // 2, size // 2):
            bad.append(f"{name}: rows, negative, positive are {got}")
    return bad


def check_order(folder: Path) -> list[str]:
    """Labels are mixed: neither in long runs nor strictly alternating."""
    bad = []
    for name in SIZES:
        labels = "".join(label for _, label in read_rows(folder / name))
        longest = max((len(run[0]) for run in re.finditer(r"0+|1+", labels)), default=0)
        if not 1 < longest <= MAX_SAME_LABEL_RUN:
            bad.append(f"{name}: longest run of one label is {longest}")
    return bad


def check_blanks(folder: Path) -> list[str]:
    """No blanks at the ends, no double or unusual blanks inside, no empty sentence."""
    pairs = all_sentences(folder)
    return [f"{name}: {s!r}" for name, s in pairs if not s or s != " ".join(s.split())]


def check_lengths(folder: Path) -> list[str]:
    """4 to 28 words, except exactly one sentence of 3 in demo.tsv; a mean of about 12."""
    sized = [(name, text, len(words(text))) for name, text in all_sentences(folder)]
    odd = [(n, t, k) for n, t, k in sized if not MIN_WORDS <= k <= MAX_WORDS]
    bad = [f"{n}: {k} words: {t!r}" for n, t, k in odd if (n, k) != ("demo.tsv", 3)]
    if sum((n, k) == ("demo.tsv", 3) for n, _, k in odd) != 1:
        bad.append("demo.tsv: not exactly one sentence of 3 words")
    for name in SIZES:
        lengths = [k for n, _, k in sized if n == name]
        mean = sum(lengths) / max(len(lengths), 1)
        if not MEAN_WORDS[0] <= mean <= MEAN_WORDS[1]:
            bad.append(f"{name}: {mean:.2f} words on average")
    return bad


def check_unique(folder: Path) -> list[str]:
    """No sentence occurs twice anywhere, whatever its case and punctuation."""
    seen: dict[tuple[str, ...], str] = {}
    bad = []
    for name, text in all_sentences(folder):
        key = tuple(words(text.lower()))
        if key in seen:
            bad.append(f"{name}: {text!r} is already in {seen[key]}")
        seen.setdefault(key, name)
    return bad


def check_near_duplicates(folder: Path) -> list[str]:
    """The Jaccard similarity of any two sentences' content words is below the limit."""
    sets = [(name, text, content_words(text)) for name, text in all_sentences(folder)]
    bad = []
    for (name_a, text_a, a), (name_b, text_b, b) in combinations(sets, 2):
        similarity = len(a & b) / len(a | b)
        if similarity >= MAX_JACCARD:
            bad.append(f"{similarity:.2f}: {name_a}: {text_a!r} / {name_b}: {text_b!r}")
    return bad


def check_tokenizer_cases(folder: Path) -> list[str]:
    """demo.tsv holds the cases that exercise a tokenizer."""
    text = "\n".join(sentence for sentence, _ in read_rows(folder / "demo.tsv"))
    cases = {
        "accented word": r"[àâäçèéêëîïôöùûü]",
        "long word": r"\b[a-z]{20,}\b",
        "number with comma": r"\b\d{1,3},\d{3}\b",
        "em dash": "—",
        "currency sign": "[£€]",
        "word in capitals": r"\b[A-Z]{4,}\b",
        "apostrophe": r"\w['’]\w",
        "hyphenated word": r"\w-\w",
        "question": r"\?",
    }
    return [f"demo.tsv: no {what}" for what, regex in cases.items() if not re.search(regex, text)]


def check_no_url_or_emoji(folder: Path) -> list[str]:
    """No web addresses, and no characters beyond Latin letters and common punctuation."""
    strange = re.compile(r"https?:|www\.|[^\x20-\x7e\u00a3\u00c0-\u024f\u2014\u2019\u20ac]")
    return [f"{name}: {text!r}" for name, text in all_sentences(folder) if strange.search(text)]


CHECKS: list[Check] = [
    check_format,
    check_counts,
    check_order,
    check_blanks,
    check_lengths,
    check_unique,
    check_near_duplicates,
    check_tokenizer_cases,
    check_no_url_or_emoji,
]


@pytest.mark.parametrize("check", CHECKS)
def test_corpus_keeps_rule(check: Check) -> None:
    assert check(CORPUS) == []


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the corpus in which a test may plant a fault."""
    for name in SIZES:
        shutil.copy(CORPUS / name, tmp_path / name)
    return tmp_path


def replace_row(path: Path, index: int, line: str) -> None:
    """Put another line in the place of one row (the header is row 0)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[index] = line
    path.write_bytes(("\n".join(lines) + "\n").encode("utf-8"))


def longest_sentence(name: str) -> str:
    return max((text for text, _ in read_rows(CORPUS / name)), key=len)


def test_planted_near_duplicate_is_found(copy: Path) -> None:
    near = re.sub(r"\w+(\W*)$", r"lighthouse\1", longest_sentence("train.tsv"))
    replace_row(copy / "dev.tsv", 5, f"{near}\t1")
    assert check_unique(copy) == []
    assert len(check_near_duplicates(copy)) == 1


def test_planted_duplicate_is_found(copy: Path) -> None:
    again = longest_sentence("train.tsv").upper().replace(",", "")
    replace_row(copy / "demo.tsv", 7, f"{again}\t0")
    assert len(check_unique(copy)) == 1


@pytest.mark.parametrize(
    ("line", "check"),
    [
        (" The lamp hummed all night and drove us mad.\t0", check_blanks),
        ("The lamp  hummed all night and drove us mad.\t0", check_blanks),
        ('The "designer" lamp hummed all night.\t0', check_format),
        ("The lamp hummed all night and drove us mad.\t0\r", check_format),
        ("The lamp hummed all night and drove us mad.\t2", check_counts),
        ("Awful humming lamp.\t0", check_lengths),
        ("The lamp " + "hummed " * 27 + "on.\t0", check_lengths),
        ("The lamp hummed all night \U0001f620 again.\t0", check_no_url_or_emoji),
    ],
)
def test_planted_fault_is_found(copy: Path, line: str, check: Check) -> None:
    replace_row(copy / "train.tsv", 9, line)
    assert check(copy) != []


@pytest.mark.parametrize("fault", ["header", "newline", "missing row", "sorted"])
def test_planted_file_fault_is_found(copy: Path, fault: str) -> None:
    path = copy / "dev.tsv"
    text = path.read_text(encoding="utf-8")
    head, *rows = text.splitlines(keepends=True)
    by_label = sorted(rows, key=lambda row: row[-2])
    edited, check = {
        "header": ("label\tsentence\n" + "".join(rows), check_format),
        "newline": (text + "\n", check_format),
        "missing row": (head + "".join(rows[1:]), check_counts),
        "sorted": (head + "".join(by_label), check_order),
    }[fault]
    path.write_bytes(edited.encode("utf-8"))
    assert check(copy) != []
