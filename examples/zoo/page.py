"""docs/zoo.md, its twin, and the bug reports in docs/zoo/, from the rows and the known faults."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from examples.zoo.mending import Fault, find_note, load_faults
from examples.zoo.results import GOOD, STORE, Row
from examples.zoo.tables import TABLES, Table

DOCS: Final = STORE.parents[1]
PAGES: Final = (DOCS / "zoo.md", DOCS / "zoo_cn.md")
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
    "{pairs} pairs, {names} architectures: {good} faithful or equal up to float32, "
    "{bad} diverge, {other} cannot be judged.",
    "{pairs} 对，{names} 种架构：{good} 对忠实或仅差 float32 舍入，{bad} 对有差异，{other} 对无法判定。",
)
_SHORT = 160
Rows = Mapping[str, Row]


def write_pages(rows: Rows) -> None:
    """Put the tables into both pages, and write the bug reports."""
    for language, page in enumerate(PAGES):
        text = page.read_text("utf-8")
        before, _, rest = text.partition(_BEGIN)
        after = rest.partition(_END)[2]
        page.write_text(
            f"{before}{_BEGIN}\n\n{make_tables(rows, language)}\n{_END}{after}", "utf-8"
        )
    for table in TABLES:
        faults = load_faults().get(table.key, ())
        if faults:
            path = DOCS / "zoo" / f"{table.key}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(make_reports(table, faults, rows), "utf-8")


def make_tables(rows: Rows, language: int) -> str:
    """Return a section for each table of the zoo."""
    judged = [one for one in TABLES if any(name.startswith(f"{one.key}: ") for name in rows)]
    return "\n\n".join(_make_table(table, rows, language) for table in judged) + "\n"


def _make_table(table: Table, rows: Rows, language: int) -> str:
    faults = load_faults().get(table.key, ())
    own = {
        name: rows[key] for name in table.load_pairs() if (key := f"{table.key}: {name}") in rows
    }
    good = sum(row.verdict in GOOD for row in own.values())
    bad = sum(row.verdict == "diverges" for row in own.values())
    counted = _COUNT[language].format(
        pairs=len(own), names=len({name.split()[0] for name in own}), good=good, bad=bad,
        other=len(own) - good - bad,
    )  # fmt: skip
    head = _HEAD[language]
    lines = [f"## {table.title}", "", counted, "", _join(head), _join(["---"] * len(head))]
    lines += [_make_line(table, name, row, faults) for name, row in own.items()]
    return "\n".join(lines)


def _make_line(table: Table, name: str, row: Row, faults: Sequence[Fault]) -> str:
    worst = "" if row.worst is None else f"{row.worst:.1e}"
    place = f"{row.stage}: `{row.place}`: " if row.stage else ""
    line = f"`{row.paddle_line}`" if row.paddle_line else ""
    found = [number for number, fault in enumerate(faults, 1) if fault.shows_in(name)]
    linked = ", ".join(f"[{number}](zoo/{table.key}.md#report-{number})" for number in found)
    if linked and row.without:
        linked += f"; without: {_shorten_verdict(row.without)}"
    if not linked and row.verdict not in GOOD:
        linked = find_note(table.key, name)
    return _join([f"`{name}`", row.verdict, worst, place + _shorten(row.message), line, linked])


def _shorten_verdict(without: str) -> str:
    """Return a verdict without the finding that stands behind it; the report has that."""
    return without.partition(":")[0]


def _join(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shorten(text: str) -> str:
    """Return the cause, which stands after the numbers, or all of a message that names none."""
    numbers, _, cause = text.replace("|", "/").replace("\n", " ").replace("`", "'").partition(". ")
    return f"`{(cause or numbers)[:_SHORT]}`" if text else ""


def make_reports(table: Table, faults: Sequence[Fault], rows: Rows) -> str:
    """Return the bug reports of one package."""
    head = [f"# {table.title}: what the port does otherwise", "", _INTRODUCTION, ""]
    reports = (_make_report(table, *numbered, rows) for numbered in enumerate(faults, 1))
    return "\n".join([*head, *reports])


_INTRODUCTION: Final = """\
Each report names the file and the line, shows the mistake with five lines, and gives the remedy. To verify
it, the source is edited in memory as shown, as well as for the other reports that name the pair, and `align`
then says what stands under Without. A report is *proven* if a pair is faithful, or equal up to float32,
without it; *open* if another difference remains there, or if the pairs were not run without it."""


def _make_report(table: Table, number: int, fault: Fault, rows: Rows) -> str:
    place = f"{fault.module.replace('.', '/')}.py:{fault.find_line()}"
    shown = fault.pairs.split(", ")
    without = [
        f"- `{name}`: {rows[key].without or 'not run'}".replace("\n", " ")
        for name in shown
        if (key := f"{table.key}: {name}") in rows
    ]
    return "\n".join(
        [
            f"## Report {number}", "", f"`{place}` ({_tell_state(table, shown, rows)})", "",
            f"{fault.what}.", "", "```python",
            "from examples.zoo.tables import BY_KEY", "from reprod_align import align", "",
            f'table = BY_KEY["{table.key}"]', f'pair = table.load_pairs()["{shown[0]}"]',
            "print(align(*pair.make(table.load_torch(), table.load_paddle())))", "```", "",
            "Remedy:", "", "```diff", *_make_diff(fault), "```", "", "Without:", "", *without, "",
        ]
    )  # fmt: skip


def _tell_state(table: Table, pairs: Iterable[str], rows: Rows) -> str:
    known = (rows.get(f"{table.key}: {name}") for name in pairs)
    return "proven" if any(row and row.without in GOOD for row in known) else "open"


def _make_diff(fault: Fault) -> list[str]:
    lines: list[str] = []
    for old, new in fault.edits:
        made = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        lines += [line for line in list(made)[2:] if not line.startswith("@@")]
    return lines
