"""Idioms of unlike models: the correct ones pass, and each planted bug is named where it is made."""

import warnings

from reprod_align.alignment import align
from tests.pairs import jury
from tests.pairs.case import Case
from tests.pairs.families import judged

import pytest

BY_NAME = {case.name: case for case in jury.CASES}


@pytest.mark.parametrize("case", jury.CASES, ids=lambda case: case.name)
def test_the_verdict_is_right_and_the_first_finding_names_the_culprit(case: Case) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcome = judged(case)
    assert outcome.passed == (not case.culprits), outcome.text
    assert outcome.named == bool(case.culprits), outcome.text


@pytest.mark.parametrize(
    "name", ["gan: not detached", "vae: mean without gradient", "timed: sines first"]
)
def test_a_module_that_hands_a_value_on_is_not_named_for_it(name: str) -> None:
    pair = BY_NAME[name].build()
    first = align(pair.torch_model, pair.paddle_model, pair.inputs, **pair.options).findings[0]
    assert (first.torch_name, first.paddle_name) == ("", "")
