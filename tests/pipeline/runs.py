"""What the tests of trainings share: sentences, runs on the `tiny` profile, and their ends."""

import gc
from collections.abc import Iterator
from pathlib import Path

from pipeline.corpus import DEMO_FOLDER
from pipeline.profiles import PROFILES
from pipeline.run import Run, make_parser
from pipeline.training.options import add_options

import pytest


def write_sentences(folder: Path, train: int, dev: int) -> Path:
    """Write the first built-in sentences to train.tsv and dev.tsv; return the folder."""
    for name, count in (("train.tsv", train), ("dev.tsv", dev)):
        lines = (DEMO_FOLDER / name).read_text(encoding="utf-8").splitlines()[: count + 1]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def tiny_run(home: Path, *words: str) -> Run:
    """Return what a script's command line gives its `main`."""
    parser = make_parser(None)
    add_options(parser)
    options = parser.parse_args(["--profile", "tiny", "--home", str(home), *words])
    return Run(PROFILES["tiny"], home, options)


def slow_down(seconds: float) -> str:
    """Return code that makes each step of a training take so long: a tiny one takes milliseconds."""
    return f"""
import time
from pipeline.training import session as training_session
end_step = training_session.Session.end_step
def slow(*words, **numbers):
    time.sleep({seconds})
    end_step(*words, **numbers)
training_session.Session.end_step = slow
"""


@pytest.fixture(autouse=True, scope="module")
def files_closed() -> Iterator[None]:
    """Close what a module's trainings left open within its filter of warnings."""
    yield
    gc.collect()
