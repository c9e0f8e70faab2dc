"""What the check of a step compares, by which rules, and what it asks if the sides differ."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pipeline.bert.exported import weight_files
from pipeline.checks import Stage
from pipeline.run import Run
from pipeline.run.command_line import REPOSITORY
from pipeline.settings import STRICT_DTYPE
from reprod_align import EXACT, STRICT, Gate, official_rule

SIDES = {"pt": "torch", "pd": "paddle"}
SHARED_CODE = ("pipeline/settings.py", "pipeline/tasks.py", "pipeline/data/*.py")  # of all records
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
    stage: Stage | None = None,
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
    run: Run, stage: Stage | None, again: str, name: str
) -> Callable[[], Sequence[str]] | None:
    if stage is None or run.options.no_explain:
        return None
    return partial(_explain, run, stage, again, name)


def _explain(run: Run, stage: Stage, again: str, name: str) -> Sequence[str]:
    from pipeline.checks.explain import explain  # the engine: only a check that failed needs it

    return explain(run, stage, again, run.output(f"{name}_align").with_suffix(".json"))
