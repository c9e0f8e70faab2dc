"""The loop: edits that help stay, others do not, and it ends."""

from collections.abc import Iterable

from reprod_align.explain.code import Code, Edit
from reprod_align.porting.attempt import Problem
from reprod_align.porting.loop import Attempt, Case, Remedy, mend, show_diff
from reprod_align.report import Check, Report

PASSED = Report(checks=[Check("forward", "outputs", 0.0, True)])


class Rewrite(Remedy):
    """Writes a value in place of another."""

    def __init__(self, before: str, after: str) -> None:
        self.before, self.after = before, after

    def propose(self, case: Case) -> Iterable[Edit]:
        """Rewrite the value."""
        for node in case.draft.names(self.before):
            yield case.draft.replace(node, self.after)


def judge(code: Code) -> Attempt:
    """Pass once the text is "d"; "b" and "c" are two kinds of failure, all else is worse."""
    stages = {"a": "build", "b": "run", "c": "run"}
    text = code.text
    return (
        Attempt(PASSED)
        if text == "d"
        else Attempt(None, [Problem(stages.get(text, "import"), text, 1, text)])
    )  # type: ignore[arg-type]


def test_edits_that_help_stay() -> None:
    remedies = [Rewrite("a", "z"), Rewrite("a", "a"), Rewrite("a", "b"), Rewrite("b", "a"),
                Rewrite("b", "c"), Rewrite("c", "b"), Rewrite("c", "d")]  # fmt: skip
    course = mend(Code("a"), judge, remedies, "p.py")
    assert course.code.text == "d" and course.outcome.passed and not course.first.passed
    assert [step.remedy for step in course.steps] == ["Rewrite"] * 3
    assert "-a+b" in course.steps[0].diff and course.steps[2].problem == "run: line 1: c"


def test_it_ends_where_nothing_more_is_known() -> None:
    course = mend(Code("a"), judge, [Rewrite("a", "b"), Rewrite("b", "a")], "p.py")
    assert course.code.text == "b" and course.outcome.problems[0].stage == "run"
    assert not mend(Code("d"), judge, [], "p.py").steps


def test_fewer_findings_are_better_and_other_ones_too() -> None:
    def outcome(*texts: str) -> Attempt:
        return Attempt(Report(), [Problem("align", text) for text in texts])

    assert outcome("a").beats(outcome("a", "b"))
    assert outcome("c").beats(outcome("a"))
    assert not outcome("a", "b").beats(outcome("a"))
    assert not outcome("a").beats(outcome("a"))
    assert outcome("a").beats(Attempt(None, [Problem("run", "x")]))


def test_a_diff_is_one_that_patch_takes() -> None:
    assert show_diff("a\n", "b\n", "p.py") == "--- a/p.py\n+++ b/p.py\n@@ -1 +1 @@\n-a\n+b\n"
