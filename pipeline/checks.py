"""The check of a step: what it compares, by which rules, what it asks if the sides differ, what it writes."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.bert.exported import weight_files
from pipeline.run import REPOSITORY, Run
from pipeline.settings import STRICT_DTYPE
from reprod_align import EXACT, STRICT, Gate, official_rule
from reprod_align.page import CurvePlot
from reprod_align.page.outputs import add_output_arguments
from reprod_align.report.gates import (
    describe_step,
    judge_gates,
    make_steps_page,
    read_found,
    read_results,
)

if TYPE_CHECKING:
    from pipeline.explain import Stage

SIDES = {"pt": "torch", "pd": "paddle"}
SHARED_CODE = ("pipeline/settings.py", "pipeline/tasks.py", "pipeline/corpus.py")  # of all records
MODEL_CODE = ("models/bert_config.py", "pipeline/bert/exported.py", "pipeline/bert/fake_batch.py")
TRAINING_CODE = "pipeline/training/*.py"


def build_gate(
    run: Run,
    name: str,
    scripts: Sequence[str],
    *,
    exact: bool = False,
    threshold: float = 1e-6,
    unit: str = "tensor",
    expect_noise: bool = False,
    required: Sequence[str] = (),
    required_twin: str = "",
    stage: "Stage | None" = None,
) -> Gate:
    """Return what to compare as `name` ("forward") and by which rules.

    `scripts` write the records, PyTorch's first. `exact` records hold values that must be equal, and
    exist in float64 alone; with --dtype float32 the official rule alone judges all others. `required`
    keys must be in the official records, and in the strict ones too, or `required_twin` in their place.
    If the sides differ, `align` is run on the models up to `stage`.
    """
    first_run = " and ".join(run.command(script) for script in scripts)
    official, strict = (
        (run.output(f"{name}_torch", dtype), run.output(f"{name}_paddle", dtype))
        for dtype in (STRICT_DTYPE if exact else "float32", STRICT_DTYPE)
    )
    quick = not exact and STRICT_DTYPE not in run.dtypes
    return Gate(
        name=name,
        official=official,
        strict=official if quick else strict,
        threshold=threshold,
        strict_rule=EXACT if exact else official_rule(threshold) if quick else STRICT,
        log=run.results / f"{name}_diff.log",
        first_run=first_run,
        unit=unit,
        expect_noise=expect_noise,
        sources=(list_sources(run, "pt", scripts, exact), list_sources(run, "pd", scripts, exact)),
        required=tuple(required),
        required_twin="" if quick else required_twin,
        explanation=_explain_later(run, stage, first_run, name),
    )


def list_sources(run: Run, side: str, scripts: Sequence[str], exact: bool) -> tuple[Path, ...]:
    """Return the code and weights that make one side's records; a record older than one is stale.

    Exact records, data and learning rates, are made without a model.
    """
    own = [script for script in scripts if f"/{side}_" in script]
    patterns = [*own, f"pipeline/{side}/*.py", *SHARED_CODE]
    if not exact:
        patterns += [f"models/{side}_bert.py", *MODEL_CODE]
    if any(script.endswith("_train.py") for script in own):
        patterns.append(TRAINING_CODE)
    code = [path for pattern in patterns for path in sorted(REPOSITORY.glob(pattern))]
    return (*code, *(() if exact else weight_files(run, SIDES[side])))


def _explain_later(
    run: Run, stage: "Stage | None", again: str, name: str
) -> Callable[[], Sequence[str]] | None:
    if stage is None or run.options.no_explain:
        return None
    return partial(_explain, run, stage, again, name)


def _explain(run: Run, stage: "Stage", again: str, name: str) -> Sequence[str]:
    from pipeline.explain import explain  # the engine: only a check that failed needs it

    return explain(run, stage, again, run.output(f"{name}_align").with_suffix(".json"))


def add_options(parser: ArgumentParser) -> None:
    """Add what every check can write beside its log."""
    add_output_arguments(parser, json=False)


def judge(run: Run, *gates: Gate) -> int:
    """Compare each gate's files; return the worst exit code. Writes --report, --markdown and --junit."""
    name, rows = Path(sys.argv[0]).name, [(gate.name, gate.name, "") for gate in gates]
    kept = {gate.name: found_file(run, gate.name) for gate in gates}
    return judge_gates(run.options, gates, kept, partial(collect_page, run, name, rows))


def found_file(run: Run, name: str) -> Path:
    """Return where what `align` found after a failed comparison is kept."""
    return run.output(f"{name}_align").with_suffix(".json")


def collect_page(run: Run, title: str, rows: Sequence[tuple[str, str, str]]) -> Any:
    """Return the page of some comparisons: a row for each, with its name, its gate's and its seconds."""
    files = {name: run.output(f"{name}_diff").with_suffix(".json") for _, name, _ in rows}
    results = read_results(files)
    found = read_found(found_file(run, name) for name in results)
    steps = [describe_step(label, results.get(name), seconds) for label, name, seconds in rows]
    return make_steps_page(title, steps, results, found, _read_curves(run, results))


def _read_curves(run: Run, names: Iterable[str]) -> list[Any]:
    """Return the losses of Step 5, epoch after epoch."""
    from reprod_align import load_record

    if "train_align" not in names:
        return []
    sides = []
    for side in ("torch", "paddle"):
        path = run.output(f"train_align_{side}")
        record = load_record(path) if path.is_file() else {}
        sides.append([float(loss) for key, value in record.items() if key.endswith("_losses")
                      for loss in value.ravel()])  # fmt: skip
    steps = range(min(map(len, sides)))
    losses = [side[: len(steps)] for side in sides]
    return [CurvePlot("loss of Step 5", list(steps), losses[0], losses[1])] if len(steps) else []
