"""The table of entries and their code, made from the entries and from running them: Markdown, text, plain data."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reprod_align.api import TOPICS, list_entries, list_topic, read_title
from reprod_align.api.calls import find_rows
from reprod_align.api.entry import DATA_NOTE, NOT_RUN, Entry, EntryOutcome, list_versions, run_entry
from reprod_align.base.files import whole_file
from reprod_align.errors import ReprodError

_PARTS = {"torch_side": "PyTorch", "paddle_side": "Paddle"}
PLAIN = "the plain call, which differs"


def as_text(entry: Entry, outcome: EntryOutcome) -> str:
    """Return an entry with its code on both sides and what running it gave."""
    lines = [entry.slug, "", entry.differs, ""]
    lines += [f"PyTorch: {entry.apis[0]}", f"Paddle:  {entry.apis[1]}"]
    lines += [f"source:  {'; '.join(entry.sources)}"] * bool(entry.sources)
    lines += [f"port:    {row}" for row in find_rows(_read_name(entry))]
    lines += ["obsolete: the plain call is gone"] * entry.obsolete
    for side, words in list_parts(entry).items():
        lines += [
            "",
            f"{words}:",
            *(f"    {line}".rstrip() for line in entry.code(side).splitlines()),
        ]
    for helper in entry.helpers():
        lines += ["", *(f"    {line}".rstrip() for line in helper.splitlines())]
    lines += ["", f"result: {describe_outcome(outcome)} ({describe_versions()})"]
    if entry.because:
        lines.append(f"compared to {entry.tolerance:g}: {entry.because}")
    return "\n".join([*lines, f"({DATA_NOTE})"])


def _read_name(entry: Entry) -> str:
    """Return the name of PyTorch's API that an entry is about, without arguments."""
    return re.split(r"[^.\w]", entry.apis[0])[0]


def as_rows(rows: Sequence[str]) -> str:
    """Return what is known of a call that no entry is about."""
    return "\n".join(
        ["what `reprod-align port` tries in its place:", *(f"  {one}" for one in rows)]
    )


def list_parts(entry: Entry) -> dict[str, str]:
    """Return which functions of an entry are shown, and their headings."""
    return _PARTS | ({"plain": PLAIN} if entry.has_trap else {})


def as_list(found: Sequence[Entry]) -> str:
    """Return one line an entry, in columns: name, the two calls, what differs."""
    width = max((len(entry.slug) for entry in found), default=0)
    return "\n".join(f"{entry.slug:<{width}}  {entry.differs}" for entry in found)


def as_data(entry: Entry, outcome: EntryOutcome | None = None) -> dict[str, Any]:
    """Return an entry for JSON; with its outcome if it was run."""
    data: dict[str, Any] = {
        "name": entry.slug,
        "torch": entry.apis[0],
        "paddle": entry.apis[1],
        "differs": entry.differs,
        "chinese": entry.chinese,
        "sources": list(entry.sources),
        "obsolete": entry.obsolete,
        "calls": find_rows(_read_name(entry)),
        "code": {side: entry.code(side) for side in list_parts(entry)},
    }
    if outcome is not None:
        data |= {
            "result": outcome.result,
            "measured": outcome.measured,
            "versions": list_versions(),
        }
    return data


def describe_outcome(outcome: EntryOutcome) -> str:
    """Return an outcome in one line."""
    return outcome.result + (f": {outcome.measured}" if outcome.measured else "")


def describe_versions() -> str:
    """Return the frameworks' names and versions."""
    return ", ".join(
        f"{name} {version or 'not installed'}" for name, version in list_versions().items()
    )


def choose_exit_code(outcome: EntryOutcome) -> int:
    """Return the exit code: 0 if the entry holds, 1 if not, 2 if it could not be run."""
    if outcome.result == NOT_RUN:
        return 2
    return 0 if outcome.holds else 1


Outcomes = Mapping[str, EntryOutcome]

_NOTICE = (
    "<!-- Made by `reprod-align api --write docs/api`: edit reprod_align/api/topics instead. -->"
)
_CHINESE = {
    "equal": "相同",
    "differs as described": "如所述不同",
    "the description is out of date": "说明已过时",
    "not run": "未运行",
    "visible": "差异明显",
    "another shape, type or order": "形状、类型或顺序不同",
    "in the digits of float32": "差异在 float32 的精度范围内",
    "PyTorch": "PyTorch",
    "Paddle": "Paddle",
    PLAIN: "直接写法，结果不同",
    "random numbers are compared: bound and standard deviation of 160000 of them": "比较的是随机数：160000 个数的界与标准差",
    "PyTorch divides by the norm plus 1e-7, Paddle by the norm": "PyTorch 除以范数加 1e-7，Paddle 除以范数",
    "paddle.metric computes in float32": "paddle.metric 以 float32 计算",
    "Paddle keeps rho and epsilon in float32": "Paddle 以 float32 保存 rho 和 epsilon",
}
"""fixed phrases; what the entries hold in English alone: code, and the names of the sources"""
_DATA_NOTE_CN = "`numbers(2, 3)` 是形状为 (2, 3) 的正态随机数组，两边相同；`filled(layer)` 用这样的数填充一层的参数；默认数据类型是 float64"
_HEADINGS = ("PyTorch", "Paddle", "what differs", "result here")
_HEADINGS_CN = ("PyTorch", "Paddle", "区别", "运行结果")
_INTRODUCTION = """# PyTorch and Paddle, API by API

[中文](README_cn.md)

{count} entries; each name leads to the code on both sides. Every entry was run with {versions}, on a CPU:

- **equal**: the calls shown compute the same, in float64 to 1e-12 unless its entry says otherwise and why;
- **differs as described**: so does the equivalent code, while the plain call, the one that looks the same, gives
  something else, as the sentence says. A trap;
- **the description is out of date**: neither; the tests then fail.

`reprod-align api NAME` shows and runs one entry here and now, `reprod-align api --search WORD` finds some. Marked ⌛ are
things that older documents use and that are gone. `audit` and the cause messages of `align` refer to these entries.

An entry's source is the *guide* (Paddle's guide to reproducing NLP papers), the *quick start* (PaddleNLP's tutorial on
migrating BERT), the *FAQ* (Paddle's older one on building networks, training and evaluation), or the *Informer log* (of a port of Informer).
"""
_INTRODUCTION_CN = """# PyTorch 与 Paddle 接口对照

[English](README.md)

共 {count} 条，点击名称可看两边的代码。每一条都用 {versions} 在 CPU 上运行过：

- **相同**：所示调用的计算结果相同（float64，误差不超过 1e-12，例外会在条目中说明原因）；
- **如所述不同**：等价代码结果相同，而“看上去一样”的直接写法结果不同，与说明一致，即一个陷阱；
- **说明已过时**：两者都不成立，此时测试会失败。

`reprod-align api 名称` 显示并当场运行一条，`reprod-align api --search 词` 查找。⌛ 表示旧文档使用、如今已不存在的接口。
`audit` 与 `align` 的原因说明都引用这些条目。

条目的来源：guide 指飞桨《论文复现指南》NLP 版，quick start 指 PaddleNLP 的 BERT 迁移教程，FAQ 指飞桨旧版《组网、训练、评估常见问题》，
Informer log 指一次 Informer 移植的记录。
"""


def write_pages(folder: Path) -> list[str]:
    """Write the table in both languages and a page of code a topic; return the files' names.

    Raises ReprodError if an entry does not hold, before anything is written.
    """
    pages = make_pages({entry.slug: run_entry(entry) for entry in list_entries()})
    for name, text in pages.items():
        with whole_file(folder / name) as handle:
            handle.write(text.encode())
    return list(pages)


def make_pages(outcomes: Outcomes) -> dict[str, str]:
    """Return every page's text by file name. Raises ReprodError if an entry does not hold."""
    failed = [f"{slug}: {describe_outcome(it)}" for slug, it in outcomes.items() if not it.holds]
    if failed:
        raise ReprodError(f"{len(failed)} entries do not hold, among them {failed[0]}")
    pages = {
        "README.md": _write_table(outcomes, False),
        "README_cn.md": _write_table(outcomes, True),
    }
    for topic in TOPICS:
        for chinese in (False, True):
            pages[_name_page(topic, chinese)] = _write_code_page(topic, outcomes, chinese)
    return pages


def _name_page(topic: str, chinese: bool) -> str:
    return f"{topic}_cn.md" if chinese else f"{topic}.md"


def _translate(phrase: str) -> str:
    raised = phrase.removeprefix("the plain call raises ")
    return _CHINESE[phrase] if raised == phrase else f"直接写法抛出 {raised}"


def _write_table(outcomes: Outcomes, chinese: bool) -> str:
    introduction = _INTRODUCTION_CN if chinese else _INTRODUCTION
    lines = [_NOTICE, introduction.format(count=len(outcomes), versions=describe_versions())]
    for topic in TOPICS:
        headings = ("条目" if chinese else "entry", *(_HEADINGS_CN if chinese else _HEADINGS))
        lines += [
            f"## {read_title(topic, chinese)}",
            "",
            _write_row(headings),
            _write_row(["---"] * len(headings)),
        ]
        lines += [
            _write_row(_list_cells(topic, entry, outcomes, chinese)) for entry in list_topic(topic)
        ]
        lines.append("")
    return "\n".join(lines)


def _list_cells(topic: str, entry: Entry, outcomes: Outcomes, chinese: bool) -> list[str]:
    outcome = outcomes[entry.slug]
    result = _translate(outcome.result) if chinese else outcome.result
    mark = " ⌛" if entry.obsolete else ""
    name = f"[{entry.slug}]({_name_page(topic, chinese)}#{entry.slug}){mark}"
    sentence = entry.chinese if chinese else entry.differs
    return [name, *(f"`{api}`" for api in entry.apis), sentence, result]


def _write_row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _write_code_page(topic: str, outcomes: Outcomes, chinese: bool) -> str:
    other = "English" if chinese else "中文"
    table = "[表格](README_cn.md)" if chinese else "[Table](README.md)"
    note = f"{_DATA_NOTE_CN}。" if chinese else f"{DATA_NOTE}."
    lines = [_NOTICE, f"# {read_title(topic, chinese)}", ""]
    lines += [f"[{other}]({_name_page(topic, not chinese)}) · {table}", "", note, ""]
    helpers = dict.fromkeys(code for entry in list_topic(topic) for code in entry.helpers())
    if helpers:
        used = "下文用到：" if chinese else "Used below:"
        lines += [used, "```python", "\n\n\n".join(helpers), "```", ""]
    show = _show_in_chinese if chinese else _show_in_english
    for entry in list_topic(topic):
        lines += show(entry, outcomes[entry.slug])
    return "\n".join(lines)


def _show_in_english(entry: Entry, outcome: EntryOutcome) -> list[str]:
    lines = [f"## {entry.slug}", "", entry.differs, ""]
    for side, words in list_parts(entry).items():
        lines += [f"{words}:", "```python", entry.code(side), "```"]
    lines.append(f"Result: {describe_outcome(outcome)}.")
    if entry.because:
        lines[-1] += f" Compared to {entry.tolerance:g}: {entry.because}."
    if entry.sources:
        lines.append(f"Source: {'; '.join(entry.sources)}.")
    return [*lines, ""]


def _show_in_chinese(entry: Entry, outcome: EntryOutcome) -> list[str]:
    lines = [f"## {entry.slug}", "", entry.chinese, ""]
    for side, words in list_parts(entry).items():
        lines += [f"{_translate(words)}：", "```python", entry.code(side), "```"]
    found = [_translate(phrase) for phrase in (outcome.result, outcome.measured) if phrase]
    lines.append(f"结果：{'：'.join(found)}。")
    if entry.because:
        lines[-1] += f"比较到 {entry.tolerance:g}：{_translate(entry.because)}。"
    if entry.sources:
        lines.append(f"来源：{'；'.join(entry.sources)}。")
    return [*lines, ""]
