"""The sources of `benchmarks.ports`, and the port of one of them: NAME ROW.json."""

import importlib.machinery
import json
import sys
import time
import types
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.port_list import CASES
from reprod_align.base.console import quieten
from reprod_align.explain.code import Code
from reprod_align.model.side import Inputs
from reprod_align.porting.attempt import is_guarded, run_guarded
from reprod_align.porting.gathering.gather import write_whole
from reprod_align.porting.gathering.modules import Library
from reprod_align.porting.loop import Attempt
from reprod_align.porting.paconvert import make_draft
from reprod_align.porting.port import Bench, port
from reprod_align.porting.report import describe
from reprod_align.porting.source import Source, open_source


def main(name: str, out: Path) -> None:
    """Port one source and write its row."""
    quieten()
    prepare_packages()
    case = CASES[name]
    path = find_file(case.module)
    source = open_source(path, f"{case.module}:{case.call}")
    inputs = case.make_inputs()
    started = time.monotonic()
    with TemporaryDirectory() as folder:
        result = port(source, inputs, Path(folder, "out"))
    seconds = round(time.monotonic() - started)
    stage = {"does not import": 0, "does not build": 1}.get(result.verdict, 2)
    row = {
        "name": name,
        "seconds": seconds,
        "passed": result.passed,
        "verdict": result.verdict,
        "edits": len(result.course.steps),
        "at_once": describe(result.course.first),
        "alone": judge_alone(source, inputs) if "--alone" in sys.argv else "",
        "calls": [result.draft.proven, len(result.draft.unproven), len(result.draft.unseen)],
        "imports": stage > 0,
        "builds": stage > 1,
        "left": result.left,
    }
    out.write_text(json.dumps(row), encoding="utf-8")


def judge_alone(source: Source, inputs: Inputs) -> str:
    """Return what comes of PaConvert's own output, its relative imports written in full."""
    module = Library().open(source.name)
    assert module is not None
    package = source.name.partition(".")[0]
    draft = make_draft("alone.py", write_whole(module), package)
    if draft.left:  # their lines begin with >>>>>>, for a person to change
        return f"{len(draft.left)} lines not converted"
    with TemporaryDirectory() as folder:
        found: Attempt = Bench(source, inputs, draft, Path(folder))(Code(draft.text))
    return describe(found)


def find_file(module: str) -> Path:
    """Return where a module's source lies; no module but its packages is imported."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{module} is not installed: see benchmarks/requirements-ports.txt")
    return Path(spec.origin)


def prepare_packages() -> None:
    """Make builds for CUDA importable beside a CPU build of PyTorch: nothing compiled is used here."""
    import torch

    if torch.version.cuda is None:
        library: Any = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)
        for name in ("torchaudio", "torchaudio.models"):  # the packages without their content
            _open_package(name)


_kept: list[Any] = []


def _open_package(name: str) -> None:
    parent, _, last = name.rpartition(".")
    found = importlib.machinery.PathFinder.find_spec(
        name, sys.modules[parent].__path__ if parent else None
    )  # type: ignore[arg-type]
    if found is not None:
        package = types.ModuleType(name)
        package.__path__, package.__spec__ = list(found.submodule_search_locations or []), found
        sys.modules[name] = package


if __name__ == "__main__":
    if not is_guarded():
        sys.exit(run_guarded([sys.executable, "-m", "benchmarks.port_cases", *sys.argv[1:]]))
    main(sys.argv[1], Path(sys.argv[2]))
