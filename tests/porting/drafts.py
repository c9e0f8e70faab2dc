"""Writes small sources to files, and ports them from drafts that are given, as PaConvert writes them."""

from collections.abc import Mapping
from itertools import count
from pathlib import Path
from textwrap import dedent

from reprod_align.explain.code import Code
from reprod_align.porting.loop import Course, mend
from reprod_align.porting.paconvert import read_draft
from reprod_align.porting.port import Bench
from reprod_align.porting.remedies import REMEDIES
from reprod_align.porting.source import Source, open_source

import numpy as np

NUMBERS = (np.random.default_rng(0).standard_normal((4, 6)),)
_numbers = count()


def write_source(folder: Path, text: str | Mapping[str, str], call: str = "Net()") -> Source:
    """Write a file, or the files of a package whose model is in net.py, and open the call in it.

    No other source has its name: modules stay in sys.modules.
    """
    name = f"source_{next(_numbers)}"
    if isinstance(text, str):
        path = folder / f"{name}.py"
        path.write_text(dedent(text))
        return open_source(path, f"{name}:{call}")
    (folder / name).mkdir()
    for file, part in {"__init__.py": "", **text}.items():
        (folder / name / file).write_text(part)
    return open_source(folder / name / "net.py", f"{name}.net:{call}")


def make_bench(folder: Path, source: str, draft: str, inputs: object = NUMBERS) -> Bench:
    """Return the bench of a source whose model is `Net()`."""
    opened = write_source(folder, source)
    attempts = folder / f"{opened.name}_attempts"
    attempts.mkdir()
    return Bench(opened, inputs, read_draft(dedent(draft)), attempts)  # type: ignore[arg-type]


def mended(folder: Path, source: str, draft: str, inputs: object = NUMBERS) -> Course:
    """Return the way from a draft to its port."""
    bench = make_bench(folder, source, draft, inputs)
    return mend(Code(bench.draft.text), bench, REMEDIES, bench.file)


def names_of(course: Course) -> list[str]:
    """Return the remedies that were used."""
    return [step.remedy for step in course.steps]
