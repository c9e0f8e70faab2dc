"""Asks `align`, and `fix`, about a frozen mutant; each in a process of its own."""

import ast
import json
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.apart import Broken, run_apart
from benchmarks.mutants.frozen import Frozen, write_json
from benchmarks.mutants.repairs import Repair, judge_fix
from benchmarks.mutants.subjects import SUBJECTS
from reprod_align import align
from reprod_align.explain.code import Code, Edit

PATIENCE = 180  # seconds of a processor for a mutant
FIXING = 600  # likewise for `fix`, beside its copies of the process


@dataclass
class Result:
    """What `align` said about one mutant, word for word, and what became of its repair."""

    name: str
    outcome: str = "missed"
    """caught, missed; or hung, crashed"""
    findings: list[dict[str, Any]] = field(default_factory=list)
    """the fields of each finding"""
    pairs: dict[str, str] = field(default_factory=dict)
    """modules: PyTorch's name -> Paddle's"""
    remarks: list[str] = field(default_factory=list)
    restored: bool = False
    """whether the edit in the first finding makes the code what it was before the mutation"""
    names_change: bool = False
    """whether that edit replaces code that the mutation changed, with whatever mends it"""
    repair: Repair = "none"
    seconds: float = 0.0
    """of `align`, with what makes the models"""
    fixing: float = 0.0
    """of `fix`; 0 while it was not asked"""


def judge_mutant(frozen: Frozen) -> Result:
    """Return what `align` says about one mutant; a crash and a hang are results too."""
    start = time.perf_counter()
    try:
        result: Result = run_apart(lambda: _ask(frozen), PATIENCE)
    except Broken as error:
        result = Result(frozen.mutant.name, str(error))
    result.seconds = round(time.perf_counter() - start, 2)
    return result


def add_repair(frozen: Frozen, result: Result) -> None:
    """Ask `fix` about a mutant that `align` has caught, unless it was asked before."""
    if result.outcome != "caught" or result.fixing:
        return
    result.fixing = float(FIXING)  # one that takes longer repairs nothing
    with suppress(Broken):
        result.repair, result.fixing = run_apart(lambda: judge_fix(frozen), FIXING)


def _ask(frozen: Frozen) -> Result:
    subject = SUBJECTS[frozen.mutant.subject]
    reference, model, inputs = subject.make(subject.load(frozen.path))
    plain = json.loads(align(reference, model, inputs).to_json())
    outcome = "caught" if plain["verdict"] == "diverges" else "missed"
    result = Result(
        frozen.mutant.name, outcome, plain["findings"], plain["pairs"], plain["remarks"]
    )
    edit = result.findings[0].get("edit") if result.findings else None
    if edit is not None and Path(edit["file"]).name == frozen.path.name:
        result.restored, result.names_change = restores(frozen, edit), meets(frozen, edit)
    return result


def restores(frozen: Frozen, edit: dict[str, Any]) -> bool:
    """Tell whether an edit turns the mutated source into the original, apart from formatting."""
    code = Code(frozen.path.read_bytes().decode("utf-8"))
    try:
        made = ast.parse(code.splice([_read_span(code, edit)]))
    except SyntaxError:
        return False
    return ast.dump(made) == ast.dump(ast.parse(frozen.original))


def meets(frozen: Frozen, edit: dict[str, Any]) -> bool:
    """Tell whether an edit replaces code that the mutation changed."""
    mutant = frozen.mutant
    span = _read_span(Code(frozen.path.read_bytes().decode("utf-8")), edit)
    last = mutant.start + len(mutant.after.encode())
    return span.start < max(last, mutant.start + 1) and span.end > min(mutant.start, last - 1)


def _read_span(code: Code, edit: dict[str, Any]) -> Edit:
    start = code.offset(edit["line"], edit["column"])
    return Edit(start, code.offset(edit["last_line"], edit["last_column"]), edit["after"])


def save_result(folder: Path, result: Result) -> None:
    """Write a result beside those of the other mutants."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / f"{result.name}.json", vars(result))


def load_result(folder: Path, name: str) -> Result | None:
    """Return the result of a mutant that was judged before; None if it was not."""
    path = folder / f"{name}.json"
    return Result(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None
