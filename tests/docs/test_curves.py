"""docs/curves.md and docs/significance.md are true: what can be run of them runs, in both languages alike."""

import json
import re
import runpy
import shlex
from pathlib import Path

from reprod_align.commands import main, parse
from tests.conftest import REPOSITORY
from tests.docs.pages import blocks, commands, read

import numpy as np
import pytest

PAGES = ("docs/curves.md", "docs/significance.md")


def uncommented(block: str) -> str:
    return re.sub(r"  #.*", "", block)


@pytest.mark.parametrize("page", PAGES)
def test_both_languages_show_the_same_blocks(page: str) -> None:
    ours, theirs = blocks(page), blocks(page.replace(".md", "_cn.md"))
    assert [uncommented(block) for block in ours] == [uncommented(block) for block in theirs]


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_are_as_long_in_both_languages(page: str) -> None:
    counts = [read(name).count("\n|") for name in (page, page.replace(".md", "_cn.md"))]
    assert counts[0] == counts[1] > 10


def test_the_tables_of_formats_are_written_by_the_script() -> None:
    tool = runpy.run_path(str(REPOSITORY / "tools" / "log_formats.py"))
    for page in tool["PAGES"]:
        text = page.read_text(encoding="utf-8")
        assert tool["fill"](page) == text and text.count("mlruns/EXPERIMENT/RUN") == 1


def test_every_command_is_one_that_the_shell_takes() -> None:
    found = [shlex.split(line) for line in commands(PAGES[0]) if line.startswith("reprod-align")]
    assert len(found) == 4
    for words in found:
        parse(words[1:])  # exits where it can't be


def test_the_file_for_explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page's file: its two sides differ in AdamW's epsilon."""
    (code,) = [block for block in blocks(PAGES[0], "python") if "def torch_model" in block]
    (tmp_path / "training.py").write_text(code)
    for name, value in (("torch", 1.0), ("paddle", 1.1)):
        rows = [{"step": step, "loss": value if step > 3 else 1.0} for step in (1, 2, 3, 4, 5)]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = [str(tmp_path / name) for name in ("torch.jsonl", "paddle.jsonl", "training.py")]
    assert main(["curves", *words[:2], "--explain", words[2], "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["explanation"]
    assert found["guilty"] == ["optimizer"]
    assert "eps: 1e-08 in PyTorch, 1e-06 in Paddle" in " ".join(found["findings"])
    assert len(found["remarks"]) == 2  # made-up logs are not what the file gives


def test_the_page_on_significance_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(PAGES[1], "python")
    draw = np.random.default_rng(0)
    labels = draw.integers(0, 2, 100)
    runs = np.where(draw.random((6, 100)) < 0.1, 1 - labels, labels)
    exec(code, {"labels": labels, "torch_predictions": runs[:3], "paddle_predictions": runs[3:]})
    said = capsys.readouterr().out
    assert "McNemar p" in said and "SeedsResult(" in said
