"""All families of the suite, and what `align` said of a case."""

from dataclasses import dataclass, replace
from typing import Any

from reprod_align.alignment import align
from tests.pairs import (
    bert,
    cnn,
    conv1d,
    decoder,
    embedding,
    encoder,
    mlp,
    norms,
    rnn,
    training,
    unseen,
)
from tests.pairs.case import Case, Pair

import paddle

FAMILIES = {
    "mlp": mlp, "cnn": cnn, "conv1d": conv1d, "norms": norms, "embedding": embedding,
    "training": training, "bert": bert, "encoder": encoder, "rnn": rnn, "decoder": decoder,
    "unseen": unseen,
}  # fmt: skip

CASES: dict[str, Case] = {
    f"{family}/{case.name}": case for family, module in FAMILIES.items() for case in module.CASES
}


@dataclass(frozen=True)
class Outcome:
    """What `align` said of a case, against what it should say."""

    passed: bool
    """faithful, and what would tell of the bug is not among what was left unjudged"""
    named: bool
    """the first finding names a culprit, at a stage where it may stand; or what was left unjudged tells"""
    text: str


def run_in_float32(case: Case) -> Case:
    """Return the case with a port that runs in float32 alone, as where Paddle lacks a kernel."""

    def refuse_float64(*call: object) -> None:
        if paddle.get_default_dtype() == "float64":
            raise ValueError("unsupported dtype float64")

    def build() -> Pair:
        pair = case.build()
        pair.paddle_model.register_forward_pre_hook(refuse_float64)
        return pair

    return replace(case, build=build)


def judged(case: Case) -> Outcome:
    """Run `align` on a case as a user would."""
    pair = case.build()
    report: Any = align(pair.torch_model, pair.paddle_model, pair.inputs, **pair.options)
    if report.passed:
        noted = any(one.kind == case.noted for one in report.not_judged)
        return Outcome(not noted, noted, str(report))
    first = report.findings[0]
    here = {first.torch_name, first.paddle_name} & case.culprits
    staged = not case.stages or first.stage in case.stages
    worded = all(word in first.message.lower() for word in case.words)
    return Outcome(False, bool(here) and staged and worded, str(report))
