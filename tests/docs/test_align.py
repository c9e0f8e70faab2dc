"""docs/align.md and its reference are true: their Python and their commands run, in both languages."""

import re
import shlex
import sys
from pathlib import Path

from reprod_align.commands import main, parse
from reprod_align.explain.trials import BUDGETS
from tests.conftest import REPOSITORY
from tests.docs.pages import blocks, commands, read

import pytest

TUTORIAL = ("docs/align.md", "docs/align_cn.md")
REFERENCE = ("docs/align_reference.md", "docs/align_reference_cn.md")


def columns(text: str) -> list[tuple[str, ...]]:
    """Return the report's tables without figures: weights and rounding differ between machines."""
    text = re.sub(r"[\d.]+ x (?=PyTorch's rounding)", "", text)
    text = re.sub(r"\b\d\.\de[-+]\d\d\b", lambda figure: hide_figure(figure[0]), text)
    lines = [line for line in text.splitlines() if line not in sources(text)]
    rows = [re.split(r"\s{2,}", line.strip()) for line in lines]
    return [(row[0], row[1], row[-1]) for row in rows if len(row) == 4]


def hide_figure(figure: str) -> str:
    """Return "0" for a figure that float64 rounding alone can make, "#" for a larger one."""
    return "0" if float(figure) < 1e-12 else "#"


def findings(text: str) -> list[str]:
    """Return the findings without place and values: PyTorch draws other weights on another CPU."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if re.match(r"error\[|= (?!PyTorch)", line)]
    return [re.sub(r"at \([\d, ]+\) expected \S+, got \S+", "at #", line) for line in found]


def sources(text: str) -> list[str]:
    """Return the lines of source under the findings, and where they stand."""
    lines = text.splitlines()
    return [line for line in lines if re.match(r" *(--> |\d+ \||\||= PyTorch: )", line)]


@pytest.mark.parametrize(("pages", "number"), [(TUTORIAL, 6), (REFERENCE, 11)])
def test_both_languages_show_the_same_blocks(pages: tuple[str, str], number: int) -> None:
    pairs = list(zip(*(blocks(name) for name in pages), strict=True))
    assert len(pairs) == number
    assert [ours for ours, theirs in pairs if ours != theirs] == []


@pytest.mark.parametrize(("page", "number"), [(TUTORIAL[0], 3), (REFERENCE[0], 3)])
def test_every_command_is_one_that_the_shell_takes(page: str, number: int) -> None:
    assert len(commands(page)) == number
    for command in commands(page):
        words = shlex.split(command.removeprefix("FAULTY=1 "))
        assert words[0] == "reprod-align"
        parse(words[1:])  # exits where it can't be


@pytest.mark.every_edit
@pytest.mark.parametrize("faulty", [False, True])
def test_the_example_prints_what_the_page_shows(
    faulty: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setenv("FAULTY", "1" if faulty else "")
    command = shlex.split(commands(TUTORIAL[0])[0])
    assert main(command[1:]) == (1 if faulty else 0)
    printed, shown = capsys.readouterr().out, blocks(TUTORIAL[0], "text")[1 if faulty else 0]
    assert printed.splitlines()[0] == shown.splitlines()[0]
    assert columns(printed) == columns(shown) and len(columns(printed)) == (12 if faulty else 11)
    for part in (
        "what it means:",
        "not judged:\n  - Paddle: 1 line never ran: examples/pair_mlp.py:",
    ):
        assert part in printed and part in shown
    assert len(findings(printed)) == len(findings(shown)) == (9 if faulty else 0)
    assert findings(printed) == findings(shown)
    assert sources(printed) == sources(shown) and len(sources(shown)) == (11 if faulty else 0)


@pytest.mark.every_edit
@pytest.mark.filterwarnings("ignore")
def test_the_pages_name_the_budgets_of_edits() -> None:
    align, fix = BUDGETS["align"], BUDGETS["fix"]
    runs, seconds = f"{align.runs:,}", f"{align.seconds:g}"
    assert f"at most {runs}, for {seconds} seconds" in read(REFERENCE[0])
    assert f"{runs} 个，每一遍共 {seconds} 秒" in read(REFERENCE[1])
    for page in ("docs/fix", "docs/tolerances"):
        for end in (".md", "_cn.md"):
            assert f"{fix.runs:,} " in read(page + end) and f"{fix.seconds:g} " in read(page + end)


def test_align_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    exec(blocks(REFERENCE[0], "python")[0], {})
    assert capsys.readouterr().out == blocks(REFERENCE[0], "text")[0]


def test_the_pair_of_the_tutorial_is_faithful(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pair_mine.py").write_text(blocks(TUTORIAL[0], "python")[0], encoding="utf-8")
    assert main(["pair", str(tmp_path / "pair_mine.py")]) == 0
    assert "verdict: faithful" in capsys.readouterr().out


def test_pytorch_source_on_paddle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = "\nimport numpy as np\ninputs = (np.eye(3, dtype='float32'),)\n"
    (tmp_path / "net.py").write_text("import torch\nNet = lambda: torch.nn.Linear(3, 2)\n")
    (tmp_path / "pair.py").write_text(blocks(REFERENCE[0], "python")[1] + inputs)
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    assert main(["pair", str(tmp_path / "pair.py"), "--paddle-python", sys.executable]) == 0
    assert "verdict: faithful" in capsys.readouterr().out


def test_traces_and_their_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(blocks(REFERENCE[0], "python")[2], {})
    command = next(line for line in commands(REFERENCE[0]) if " diff " in line)
    assert main(shlex.split(command)[1:]) == 1
    last, shown = capsys.readouterr().out.splitlines()[-1], blocks(REFERENCE[0], "text")[1]
    without_figure = re.compile(r": \S+ \(limit|at \(\d, \d\) expected \S+, got \S+;")
    assert without_figure.split(last) == without_figure.split(shown.strip())
