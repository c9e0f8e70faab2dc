"""docs/zoo.md, its twin, and the bug reports in docs/zoo/, from the rows and the known faults."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from examples.zoo.chinese import SENTENCES, STAGES, TITLES, VERDICTS
from examples.zoo.mending import Fault, find_note, load_faults
from examples.zoo.results import GOOD, STORE, Row
from examples.zoo.tables import BY_KEY, TABLES, Table

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
    for key, faults in load_faults().items():
        for language in range(len(PAGES)) if faults else ():
            path = find_reports(key, language)
            path.parent.mkdir(exist_ok=True)
            path.write_text(make_reports(BY_KEY[key], faults, rows, language), "utf-8")


def find_reports(key: str, language: int) -> Path:
    """Return the page of a package's bug reports."""
    return DOCS / "zoo" / f"{key}{_ENDS[language]}"


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
    place = f"{translate(STAGES, row.stage, language)}: `{row.place}`: " if row.stage else ""
    line = f"`{row.paddle_line}`" if row.paddle_line else ""
    verdict = translate(VERDICTS, row.verdict, language)
    linked = _link_faults(table, name, row, faults, language)
    return _join([f"`{name}`", verdict, worst, place + _shorten(row.message), line, linked])


def _link_faults(table: Table, name: str, row: Row, faults: Sequence[Fault], language: int) -> str:
    """Return the reports and the designs of a pair and the verdict without them, or why it differs."""
    found = [one for one in enumerate(_leave_designs(faults), 1) if one[1].shows_in(name)]
    page = f"zoo/{table.key}{_ENDS[language]}"
    links = ", ".join(f"[{number}]({page}#{_NAMES[language][0]}-{number})" for number, _ in found)
    designs = [
        translate(SENTENCES, fault.what, language)
        for fault in faults
        if fault.design and fault.shows_in(name)
    ]
    linked = _NAMES[language][2].join([links, *designs] if links else designs)
    if linked and row.without:
        linked += _NAMES[language][1] + _shorten_verdict(row.without, language)
    if not linked and row.verdict not in GOOD:
        linked = translate(SENTENCES, find_note(table.key, name), language)
    return linked


def _leave_designs(faults: Sequence[Fault]) -> list[Fault]:
    """Return the mistakes, which have a report each; what is so by design has its row alone."""
    return [fault for fault in faults if not fault.design]


def _shorten_verdict(without: str, language: int) -> str:
    """Return a verdict without the finding that stands behind it; the report has that."""
    return translate(VERDICTS, without.partition(":")[0], language)


def _join(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _shorten(text: str) -> str:
    """Return the cause, which stands after the numbers, or all of a message that names none."""
    numbers, _, cause = text.replace("|", "/").replace("\n", " ").replace("`", "'").partition(". ")
    return f"`{(cause or numbers)[:_SHORT]}`" if text else ""


def make_reports(table: Table, faults: Sequence[Fault], rows: Rows, language: int) -> str:
    """Return the bug reports of one package."""
    title = translate(TITLES, table.title, language)
    twin = f"[{('中文', 'English')[language]}]({table.key}{_ENDS[1 - language]})"
    faults = _leave_designs(faults)
    states = [_tell_state(table, fault.pairs.split(", "), rows) for fault in faults]
    counted = _STATES[language].format(all=len(states), proven=states.count("proven"))
    head = [_TITLE[language].format(title), "", twin, "", _INTRODUCTION[language], "", counted, ""]
    reports = (_make_report(table, *numbered, rows, language) for numbered in enumerate(faults, 1))
    return "\n".join([*head, *reports])


_NAMES: Final = (("report", "; without: ", "; "), ("报告", "；去掉后：", "；"))
_TITLE: Final = ("# {}: what the port does otherwise", "# {}：移植的不同之处")
_STATES: Final = (
    "{all} reports, {proven} of them proven.",
    "共 {all} 份报告，其中 {proven} 份已证实。",
)
_STATE: Final = {"proven": "已证实", "open": "未决"}
_WORDS: Final = (("Report", "Remedy", "Without"), ("报告", "修改方法", "去掉之后"))
_INTRODUCTION: Final = (
    """\
Each report names the file and the line, shows the mistake with five lines, and gives the remedy. To verify
it, the source is edited in memory as shown, as well as for the other reports that name the pair, and `align`
then says what stands under Without. A report is *proven* if a pair is faithful, or equal up to float32,
without it; *open* if another difference remains there, or if the pairs were not run without it.""",
    """\
每份报告写明文件和行，用五行代码展示错误，并给出修改方法。验证的办法是：在内存中按所示修改源码，
提到同一对的其他报告也一并修改，“去掉之后”一节就是 `align` 此时的结论。去掉之后若有一对忠实或仅差
float32 舍入，该报告为*已证实*；若仍有其他差异，或者没有在去掉之后运行过，则为*未决*。""",
)


def _make_report(table: Table, number: int, fault: Fault, rows: Rows, language: int) -> str:
    place = f"{fault.module.replace('.', '/')}.py:{fault.find_line()}"
    shown = fault.pairs.split(", ")
    report, remedy, without = _WORDS[language]
    state = translate(_STATE, _tell_state(table, shown, rows), language)
    return "\n".join(
        [
            f"## {report} {number}", "", f"`{place}` ({state})", "",
            f"{translate(SENTENCES, fault.what, language)}{'.。'[language]}", "", "```python",
            "from examples.zoo.tables import BY_KEY", "from reprod_align import align", "",
            f'table = BY_KEY["{table.key}"]', f'pair = table.load_pairs()["{shown[0]}"]',
            "print(align(*pair.make(table.load_torch(), table.load_paddle())))", "```", "",
            f"{remedy}:", "", "```diff", *_make_diff(fault), "```", "", f"{without}:", "",
            *_list_verdicts(table, shown, rows, language), "",
        ]
    )  # fmt: skip


def _list_verdicts(table: Table, pairs: Iterable[str], rows: Rows, language: int) -> Iterator[str]:
    """Yield a line for each judged pair: its verdict without the fault, and what is left."""
    for name in pairs:
        row = rows.get(f"{table.key}: {name}")
        if row:
            verdict, colon, rest = (row.without or "not run").partition(":")
            said = translate(VERDICTS, verdict, language)
            yield f"- `{name}`: {said}{colon}{rest}".replace("\n", " ")


def _tell_state(table: Table, pairs: Iterable[str], rows: Rows) -> str:
    known = (rows.get(f"{table.key}: {name}") for name in pairs)
    return "proven" if any(row and row.without in GOOD for row in known) else "open"


def _make_diff(fault: Fault) -> list[str]:
    lines: list[str] = []
    for old, new in fault.edits:
        made = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        lines += [line for line in list(made)[2:] if not line.startswith("@@")]
    return lines
