"""Each remedy: a draft that fails without it is faithful with it."""

from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.porting import remedies
from reprod_align.porting.attempt import Problem
from reprod_align.porting.loop import Case
from reprod_align.porting.remedies import REMEDIES
from tests.porting.cases import CASES, EPSILON, FAR, INPLACE, JOINED
from tests.porting.drafts import mended, names_of

import pytest


@pytest.mark.parametrize("remedy", CASES, ids=lambda remedy: remedy.__name__)
def test_a_draft_is_mended_by_its_remedy_alone(remedy: type, tmp_path: Path) -> None:
    course = mended(tmp_path, *CASES[remedy])
    assert not course.first.passed, "the draft has no fault"
    assert course.outcome.passed, course.outcome.problems
    assert names_of(course) == [remedy.__name__]
    assert course.steps[0].diff.startswith("--- a/source_")


def test_numbers_given_to_methods_that_change_their_tensor(tmp_path: Path) -> None:
    course = mended(tmp_path, *INPLACE)
    assert course.outcome.passed and set(names_of(course)) == {"ScalarOperand"}


def test_an_index_whose_sizes_fail_at_another_line(tmp_path: Path) -> None:
    course = mended(tmp_path, *FAR)
    assert course.outcome.passed and names_of(course) == ["IndexTransposed"]


def test_lists_that_are_joined_in_an_index_count_in_the_problem_s_line(tmp_path: Path) -> None:
    """A sum in an index is a number as a rule: the other one stays."""
    course = mended(tmp_path, *JOINED)
    assert course.outcome.passed and names_of(course) == ["IndexTransposed"]
    assert course.code.text.count(".contiguous()") == 1


def test_a_private_setting_that_has_another_name_too(tmp_path: Path) -> None:
    course = mended(tmp_path, *EPSILON)
    assert course.outcome.passed and names_of(course) == ["PrivateSetting"]


def test_every_remedy_has_a_case_and_says_why() -> None:
    assert {type(remedy) for remedy in REMEDIES} == {
        *CASES, remedies.SlopeOfGivenInput, remedies.GridOfGivenImage,
    }  # fmt: skip
    assert all(remedy.reason and remedy.reason.endswith(".") for remedy in REMEDIES)


@pytest.mark.parametrize(("kind", "edits"), [("Conv1D", 1), ("Tensor", 0), ("NoneType", 0)])
def test_only_layers_keep_settings_behind_an_underscore(kind: str, edits: int) -> None:
    problem = Problem("run", f"AttributeError: '{kind}' object has no attribute 'stride'", 1)
    code = Code("y = x.stride\n")
    assert len(list(remedies.PrivateSetting().propose(Case(problem, code)))) == edits
