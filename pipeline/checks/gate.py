"""What the check of a step compares, by which rules, and what it asks if the sides differ."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from pipeline.run import JUDGE, Part, Run
from pipeline.run.command_line import REPOSITORY
from reprod_align import EXACT, STRICT, Gate


def step_gate(
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
    part: Part | None = None,
) -> Gate:
    """Return what to compare as `name` ("forward") and by which rules.

    `scripts` write the records, PyTorch's first; `exact` records hold what must not differ at
    all, and exist in float64 alone; `required` keys must be in the official records, and in the
    strict ones too, or `required_twin` in their place; if they differ, `align` is asked where the
    models part, as far as `part`.
    """
    first_run = " and ".join(run.command(script) for script in scripts)
    strict = _records(run, name, JUDGE)
    return Gate(
        name=name,
        official=strict if exact else _records(run, name, "float32"),
        strict=strict,
        threshold=threshold,
        strict_rule=EXACT if exact else STRICT,
        log=run.results / f"{name}_diff.log",
        first_run=first_run,
        unit=unit,
        expect_noise=expect_noise,
        sources=(_sources(run, "pt", scripts, exact), _sources(run, "pd", scripts, exact)),
        required=tuple(required),
        required_twin=required_twin,
        explanation=_explanation(run, part, first_run),
    )


def _explanation(run: Run, part: Part | None, again: str) -> Callable[[], Sequence[str]] | None:
    if part is None or run.options.no_explain:
        return None
    return partial(_explain, run, part, again)


def _explain(run: Run, part: Part, again: str) -> Sequence[str]:
    from pipeline.checks.explain import explanation  # the engine: only a check that failed needs it

    return explanation(run, part, again)


def _sources(run: Run, side: str, scripts: Sequence[str], exact: bool) -> tuple[Path, ...]:
    """Return the code and the weights of one side, on which its records depend.

    Exact records, data and learning rates, are made without a model.
    """
    code = [REPOSITORY / script for script in scripts if f"/{side}_" in script]
    code += (REPOSITORY / "pipeline" / side).glob("*.py")
    if exact:
        return tuple(code)
    torch_side = (run.torch_weight, run.torch_classifier)
    weights = torch_side if side == "pt" else (run.paddle_weight, run.paddle_classifier)
    return (*code, REPOSITORY / "models" / f"{side}_bert.py", *weights)


def _records(run: Run, name: str, dtype: str) -> tuple[Path, Path]:
    return run.output(f"{name}_torch", dtype), run.output(f"{name}_paddle", dtype)
