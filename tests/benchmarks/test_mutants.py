"""benchmarks/mutants: mutations parse and keep their line, the truth is direct, causes are judged."""

import pipeline  # noqa: F401
from benchmarks.mutants.__main__ import is_enough, make_table, parse
from benchmarks.mutants.operators import Mutation, mutate
from benchmarks.mutants.running import Bench, judge_mutant, prepare
from benchmarks.mutants.scoring import Row, judge_cause

import pytest

SOURCE = """def forward(self, x, mask):
    scores = x / 2.0 + mask
    probs = F.softmax(scores, axis=-1)
    return self.dropout(probs)[:, 0]
"""


@pytest.fixture(scope="module")
def bench() -> Bench:
    return prepare("pd_bert", sample=0, seed=0)


def mutation_of(bench: Bench, kind: str, before: str) -> Mutation:
    return next(it for it in bench.mutations if (it.kind, it.before) == (kind, before))


def test_a_mutation_changes_one_line() -> None:
    found = mutate(SOURCE, frozenset({2, 3, 4}))
    assert {it.kind for it in found} >= {"operator", "constant", "axis", "dropped call", "index"}
    for mutation in found:
        lines = zip(SOURCE.splitlines(), mutation.apply(SOURCE).splitlines(), strict=True)
        changed = [at for at, (old, new) in enumerate(lines, 1) if old != new]
        assert changed == [mutation.line], mutation


def test_lines_that_do_not_run_are_left_alone() -> None:
    assert {it.line for it in mutate(SOURCE, frozenset({3}))} == {3}


def test_a_mutant_that_computes_otherwise_is_caught_and_located(bench: Bench) -> None:
    row = judge_mutant(bench, mutation_of(bench, "function", "Tanh"))
    assert (row.outcome, row.module, row.cause) == ("caught", True, "right"), row


def test_a_mutant_that_computes_the_same_does_not_count(bench: Bench) -> None:
    tanh = mutation_of(bench, "function", "Tanh")
    same = Mutation("function", tanh.line, tanh.start, tanh.end, "Tanh", "Tanh", ())
    assert judge_mutant(bench, same).outcome == "unchanged"
    gone = Mutation("function", tanh.line, tanh.start, tanh.end, "Tanh", "Gone", ())
    assert judge_mutant(bench, gone).outcome == "raises"


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("its output: expected 1, got 2", "none"),
        ("its output: expected 1.5, got 2. softmax over axis 2 instead of axis 3", "right"),
        ("its output: expected 1.5, got 2. Paddle's values are all zero", "wrong"),
        ("its output: at 0. `F.softmax(x, axis=-2)` here, `softmax(x, dim=-1)` there", "right"),
    ],
)
def test_a_cause_is_judged_by_what_was_changed(message: str, cause: str) -> None:
    axis = next(it for it in mutate(SOURCE, frozenset({3})) if it.kind == "axis")
    assert judge_cause(message, axis) == cause


def test_the_table_counts_and_the_shares_decide() -> None:
    hit = Row("a", "axis", 1, "0", "1", "caught", True, True, "right")
    missed = Row("b", "axis", 1, "0", "1", "missed")
    assert make_table([hit, missed], "file")[-1].split()[:4] == ["all", "2", "1", "("]
    assert is_enough([hit]) and not is_enough([hit, missed])
    assert parse(["--sample", "3", "--file", "pd_bert"]).file == ["pd_bert"]
