"""Ports small sources from drafts that are given, as PaConvert writes them."""

import sys
from itertools import count
from pathlib import Path
from textwrap import dedent

from reprod_align.explain.code import Code
from reprod_align.porting.loop import Course, mend
from reprod_align.porting.paconvert import read_draft
from reprod_align.porting.port import Bench
from reprod_align.porting.remedies import REMEDIES
from reprod_align.porting.source import open_source

import numpy as np

NUMBERS = (np.random.default_rng(0).standard_normal((4, 6)),)
_numbers = count()


def make_bench(folder: Path, source: str, draft: str, inputs: object = NUMBERS) -> Bench:
    """Return the bench of a source whose model is `Net()`."""
    name = f"drafted_{next(_numbers)}"  # modules stay in sys.modules
    path = folder / f"{name}.py"
    path.write_text(dedent(source))
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    opened = open_source(path, f"{name}:Net()")
    (folder / f"{name}_attempts").mkdir()
    return Bench(opened, inputs, read_draft(dedent(draft)), folder / f"{name}_attempts")  # type: ignore[arg-type]


def mended(folder: Path, source: str, draft: str, inputs: object = NUMBERS) -> Course:
    """Return the way from a draft to its port."""
    bench = make_bench(folder, source, draft, inputs)
    return mend(Code(bench.draft.text), bench, REMEDIES, bench.file)


def names_of(course: Course) -> list[str]:
    """Return the remedies that were used."""
    return [step.remedy for step in course.steps]
