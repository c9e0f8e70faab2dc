"""docs/zoo.md and its twin, from the rows and the known faults; reports.py writes docs/zoo/."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from examples.zoo.chinese import SENTENCES, STAGES, TITLES, VERDICTS
from examples.zoo.mending import Fault, find_note, load_faults
from examples.zoo.reports import list_reports
from examples.zoo.results import GOOD, STORE, Row
from examples.zoo.tables import TABLES, Table
from reprod_align.page import chinese

DOCS: Final = STORE.parents[1]
PAGES: Final = (DOCS / "zoo.md", DOCS / "zoo_cn.md")
_ENDS: Final = (".md", "_cn.md")
_BEGIN, _END = "<!-- rows -->", "<!-- end of rows -->"
_HEAD: Final = (
    (
        "pair",
        "verdict",
        "worst difference",
        "first finding",
        "line in the port",
        "fault of the port",
    ),
    ("模型对", "结论", "最大差异", "首个发现", "移植代码中的行", "移植的错误"),
)
_COUNT: Final = (
    "{pairs} of {every} pairs judged, {names} architectures: {good} faithful or equal up to float32, "
    "{bad} diverge, {other} cannot be judged.",
    "评判了 {every} 对中的 {pairs} 对，{names} 种架构：{good} 对忠实或仅差 float32 舍入，{bad} 对有差异，"
    "{other} 对无法判定。",
)
_WORDS: Final = (("; without: ", "; "), ("；去掉后：", "；"))
_COLON: Final = (": ", "：")
_NUMBERS: Final = re.compile("(with [^:]*: )?(its |it differs|the outputs differ)")
_SHORT = 160
Rows = Mapping[str, Row]


def write_pages(rows: Rows) -> None:
    """Put the tables into both pages."""
    for language, page in enumerate(PAGES):
        text = page.read_text("utf-8")
        before, _, rest = text.partition(_BEGIN)
        after = rest.partition(_END)[2]
        page.write_text(
            f"{before}{_BEGIN}\n\n{make_tables(rows, language)}\n{_END}{after}", "utf-8"
        )


def make_tables(rows: Rows, language: int) -> str:
    """Return a section for each table of the zoo."""
    judged = [one for one in TABLES if any(name.startswith(f"{one.key}: ") for name in rows)]
    return "\n\n".join(_make_table(table, rows, language) for table in judged) + "\n"


def _make_table(table: Table, rows: Rows, language: int) -> str:
    faults = load_faults().get(table.faults_key, ())
    own = {
        name: rows[key] for name in table.load_pairs() if (key := f"{table.key}: {name}") in rows
    }
    good = sum(row.verdict in GOOD for row in own.values())
    bad = sum(row.verdict == "diverges" for row in own.values())
    counted = _COUNT[language].format(
        pairs=len(own), every=len(table.load_pairs()), good=good, bad=bad,
        names=len({name.split()[0] for name in own}), other=len(own) - good - bad,
    )  # fmt: skip
    head = _HEAD[language]
    title = translate(TITLES, table.title, language)
    lines = [f"## {title}", "", counted, "", _join(head), _join(["---"] * len(head))]
    lines += [_make_line(table, name, row, faults, language) for name, row in own.items()]
    return "\n".join(lines)


def translate(words: Mapping[str, str], text: str, language: int) -> str:
    """Return the text in a language: 0 English, 1 Chinese; what has no translation stays as it is."""
    return words.get(text, text) if language else text


def _make_line(table: Table, name: str, row: Row, faults: Sequence[Fault], language: int) -> str:
    worst = "" if row.worst is None else f"{row.worst:.1e}"
    colon = _COLON[language]
    where = chinese.translate(row.place) if language else row.place
    place = f"{translate(STAGES, row.stage, language)}{colon}`{where}`{colon}" if row.stage else ""
    line = f"`{row.paddle_line}`" if row.paddle_line else ""
    verdict = translate(VERDICTS, row.verdict, language)
    linked = _link_faults(table, name, row, faults, language)
    return _join(
        [f"`{name}`", verdict, worst, place + _shorten(row.message, language), line, linked]
    )


def _link_faults(table: Table, name: str, row: Row, faults: Sequence[Fault], language: int) -> str:
    """Return the reports and the designs of a pair and the verdict without them, or why it differs."""
    shown = [one for one in list_reports(table.faults_key, faults) if one.fault.shows_in(name)]
    links = ", ".join(f"[{one.number}](zoo/{one.path}{_ENDS[language]})" for one in shown)
    designs = [
        translate(SENTENCES, fault.what, language)
        for fault in faults
        if fault.design and fault.shows_in(name)
    ]
    without, then = _WORDS[language]
    linked = then.join([links, *designs] if links else designs)
    if linked and row.without:
        linked += without + _shorten_verdict(row.without, language)
    if not linked and row.verdict not in GOOD:
        linked = translate(SENTENCES, find_note(table.key, name), language)
    return linked


def _shorten_verdict(without: str, language: int) -> str:
    """Return a verdict without the finding that stands behind it; the report has that."""
    return translate(VERDICTS, without.partition(":")[0], language)


def _join(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shorten(text: str, language: int) -> str:
    """Return the cause, or all of a message that names none.

    It stands before the numbers; in rows that were judged before it did, behind them.
    """
    first, *rest = text.replace("|", "/").replace("\n", " ").split(". ")
    cause = rest if rest and _NUMBERS.match(first) else [first]
    said = ". ".join(cause)
    if language:
        parts = [chinese.translate(sentence) for sentence in cause]
        said = "。".join(parts) if all(map(chinese.is_whole, parts)) else said
    plain = said.replace("`", "'")[:_SHORT]
    return f"`{plain}`" if plain else ""
