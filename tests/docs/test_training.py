"""docs/training.md: both languages show the same commands, and the table has every option."""

import argparse
import re
import shlex
from pathlib import Path

from pipeline.run import make_parser
from pipeline.training.options import add_options
from pipeline.training.prediction import add_options as add_prediction_options
from tests.conftest import REPOSITORY

import pytest

PAGES = [REPOSITORY / "docs" / name for name in ("training.md", "training_cn.md")]
LAUNCHERS = re.compile(r"(torchrun|python -m paddle\.distributed\.launch) .*?(?=pipeline/)")
SETTINGS = re.compile(r'^([A-Z]+=(\w+|"[^"]*") )+')


def commands(text: str) -> list[str]:
    """Return the command lines of the page's blocks."""
    found = re.findall(r"^```bash\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    return [line.partition("  #")[0] for block in found for line in block.splitlines()]


def parser(script: str) -> argparse.ArgumentParser:
    made = make_parser(None)
    if "train" in script:
        add_options(made)
    elif "predict" in script:
        add_prediction_options(made)
    return made


def test_both_languages_show_the_same() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    assert commands(texts[0]) == commands(texts[1])
    headings = [re.findall(r"^(#+) ", text, flags=re.MULTILINE) for text in texts]
    assert headings[0] == headings[1]
    tables = [[line.count("|") for line in text.splitlines() if line[:1] == "|"] for text in texts]
    assert tables[0] == tables[1]
    figures = [sorted(re.findall(r"\d\.\de-\d+", text)) for text in texts]
    assert figures[0] == figures[1] != []


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_are_ones_that_the_scripts_take(page, monkeypatch) -> None:
    """With the launchers' own words left out; folders that only a reader has exist for the test."""
    monkeypatch.setattr(Path, "is_dir", lambda path: True)
    scripts = set()
    for line in commands(page.read_text(encoding="utf-8")):
        words = shlex.split(SETTINGS.sub("", LAUNCHERS.sub("python ", line)))
        if words[0].endswith(".sh"):
            words = ["python", *words]
        if words[0] != "python":
            assert words[:2] == ["reprod-align", "curves"]
            continue
        assert (REPOSITORY / words[1]).is_file(), line
        parser(words[1]).parse_args(words[2:])
        scripts.add(words[1].rpartition("/")[2])
    assert {"pt_train_many.py", "pd_train_many.py", "pt_predict.py", "check_step5.py"} <= scripts
    assert {"train_pt.sh", "train_pd.sh"} <= scripts  # `test_train_sh` runs them


@pytest.mark.parametrize("page", PAGES)
def test_every_option_is_in_the_table(page) -> None:
    table = [line for line in page.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    told = set(re.findall(r"--[a-z][a-z-]+", "\n".join(table)))
    known = {name for action in parser("train")._actions for name in action.option_strings}
    others = {"--help", "--profile", "--weights", "--home", "--no-explain", "--quiet"}
    assert known - others - {name for name in known if len(name) == 2} <= told
    assert told - known == {"--explain"}  # of reprod-align curves
