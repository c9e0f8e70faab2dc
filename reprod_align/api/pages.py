"""The table and the pages of code as Markdown, made from the entries and from running them."""

from collections.abc import Mapping
from pathlib import Path

from reprod_align.api.entry import DATA_NOTE, Entry
from reprod_align.api.running import Outcome, run
from reprod_align.api.show import describe_outcome, describe_versions, parts
from reprod_align.api.table import TOPICS, list_entries, list_topic, title
from reprod_align.base.atomic import whole_file
from reprod_align.errors import ReprodError

Outcomes = Mapping[str, Outcome]

_NOTICE = (
    "<!-- Made by `reprod-align api --write docs/api`: edit reprod_align/api/topics instead. -->"
)
_RESULTS_CN = {
    "equal": "相同",
    "differs as described": "如所述不同",
    "the description is out of date": "说明已过时",
    "not run": "未运行",
}
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

条目的来源（Source）：guide 指飞桨《论文复现指南》NLP 版，quick start 指 PaddleNLP 的 BERT 迁移教程，FAQ 指飞桨旧版《组网、训练、评估常见问题》，
Informer log 指一次 Informer 移植的记录。
"""


def write_pages(folder: Path) -> list[str]:
    """Write the table in both languages and a page of code a topic; return the files' names.

    Raises ReprodError if an entry does not hold, before anything is written.
    """
    pages = make_pages({entry.slug: run(entry) for entry in list_entries()})
    for name, text in pages.items():
        with whole_file(folder / name) as handle:
            handle.write(text.encode())
    return list(pages)


def make_pages(outcomes: Outcomes) -> dict[str, str]:
    """Return every page's text by file name. Raises ReprodError if an entry does not hold."""
    failed = [f"{slug}: {describe_outcome(it)}" for slug, it in outcomes.items() if not it.holds]
    if failed:
        raise ReprodError(f"{len(failed)} entries do not hold, among them {failed[0]}")
    pages = {"README.md": _table(outcomes, False), "README_cn.md": _table(outcomes, True)}
    return pages | {f"{topic}.md": _code_page(topic, outcomes) for topic in TOPICS}


def _table(outcomes: Outcomes, chinese: bool) -> str:
    introduction = _INTRODUCTION_CN if chinese else _INTRODUCTION
    lines = [_NOTICE, introduction.format(count=len(outcomes), versions=describe_versions())]
    for topic in TOPICS:
        headings = ("条目" if chinese else "entry", *(_HEADINGS_CN if chinese else _HEADINGS))
        lines += [f"## {title(topic, chinese)}", "", _row(headings), _row(["---"] * len(headings))]
        lines += [_row(_cells(topic, entry, outcomes, chinese)) for entry in list_topic(topic)]
        lines.append("")
    return "\n".join(lines)


def _cells(topic: str, entry: Entry, outcomes: Outcomes, chinese: bool) -> list[str]:
    outcome = outcomes[entry.slug]
    result = _RESULTS_CN[outcome.result] if chinese else outcome.result
    mark = " ⌛" if entry.obsolete else ""
    name = f"[{entry.slug}]({topic}.md#{entry.slug}){mark}"
    sentence = entry.chinese if chinese else entry.differs
    return [name, *(f"`{api}`" for api in entry.apis), sentence, result]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _code_page(topic: str, outcomes: Outcomes) -> str:
    lines = [_NOTICE, f"# {title(topic)}", f"{title(topic, True)}", ""]
    lines += [f"[Table](README.md) · [表格](README_cn.md). {DATA_NOTE}.", ""]
    helpers = dict.fromkeys(code for entry in list_topic(topic) for code in entry.helpers())
    if helpers:
        lines += ["Used below:", "```python", "\n\n\n".join(helpers), "```", ""]
    for entry in list_topic(topic):
        lines += _section(entry, outcomes[entry.slug])
    return "\n".join(lines)


def _section(entry: Entry, outcome: Outcome) -> list[str]:
    lines = [f"## {entry.slug}", "", entry.differs, "", entry.chinese, ""]
    for side, words in parts(entry).items():
        lines += [f"{words}:", "```python", entry.code(side), "```"]
    lines.append(f"Result: {describe_outcome(outcome)}.")
    if entry.because:
        lines[-1] += f" Compared to {entry.tolerance:g}: {entry.because}."
    if entry.sources:
        lines.append(f"Source: {'; '.join(entry.sources)}.")
    return [*lines, ""]
