"""A cause is judged by structure: which argument, call, setting or line; words are read at one place."""

from typing import Any

from benchmarks.mutants.cause import Cause, Told, judge, make_cause
from benchmarks.mutants.frozen import Mutant
from benchmarks.mutants.judging import Result
from benchmarks.mutants.reading import read_finding
from benchmarks.mutants.scoring import Row, is_near, make_table, score

import pytest

AXIS = make_cause("argument", "dim", "softmax", ["axis"])
EVIDENCE = "its inputs agree and its output does not; its output: expected 1.5, got 2. "


def finding(**fields: Any) -> dict[str, Any]:
    plain = dict(stage="forward", torch_name="encoder", paddle_name="encoder", evidence=EVIDENCE)
    said = dict(cause="", remedy="", settings="", message="", paddle_line="modeling.py:12")
    return {**plain, **said, **fields}


def tell(evidence: str, pairs: dict[str, str] | None = None, **fields: Any) -> Told:
    place = dict(paddle_name="", torch_name="")
    return read_finding(finding(evidence=evidence, **{**place, **fields}), pairs or {})


def mutant(cause: Cause = AXIS, **fields: Any) -> Mutant:
    plain: dict[str, Any] = dict(
        name="0000-axis-bert", subject="bert", file="modeling.py", kind="axis", line=12, statement=10,
        start=0, end=1, before="-1", after="-2", expressions=("F.softmax(x, axis=-2)",),
        places=("encoder",),
    )  # fmt: skip
    return Mutant(**{**plain, **fields}, cause=cause)


@pytest.mark.parametrize(
    ("message", "verdict"),
    [
        (EVIDENCE, "silent"),
        ("its output: expected 1.5, got 2", "silent"),
        (EVIDENCE + "softmax over axis 2 instead of axis 3", "right"),
        (EVIDENCE + "`F.softmax(x, axis=-2)` in Paddle, `softmax(x, dim=-1)` in PyTorch", "right"),
        (
            EVIDENCE + "`F.softmax(y, axis=-2)` in Paddle, `softmax(y, dim=-1)` in PyTorch",
            "right",  # the argument is named, though the code is another
        ),
        (EVIDENCE + "`F.relu(x)` in Paddle, `F.gelu(x)` in PyTorch", "wrong"),
        (EVIDENCE + "Paddle's values are PyTorch's times 3", "wrong"),
        (EVIDENCE + "Settings differ: eps: PyTorch 1e-12, Paddle 1e-5; set epsilon=1e-12", "wrong"),
    ],
)
def test_a_finding_is_right_if_it_names_what_was_changed(message: str, verdict: str) -> None:
    assert judge(AXIS, mutant().expressions, tell(message)) == verdict


def test_a_setting_is_read_with_its_name_in_either_framework_s_words() -> None:
    told = tell(
        EVIDENCE + "Settings differ: eps: PyTorch 1e-12, Paddle 1e-5; p: PyTorch 0, Paddle 1"
    )
    assert {"setting:epsilon", "setting:p"} <= told.facts


def test_a_call_that_is_missing_is_known_by_the_port_s_name_of_the_module() -> None:
    cause = make_cause("call", "linear1")
    message = EVIDENCE + "PyTorch calls `self.dense(x)` here, and Paddle does not"
    assert judge(cause, (), tell(message, {"layer.dense": "layer.linear1"})) == "right"
    assert judge(cause, (), tell(message, {"layer.dense": "layer.linear2"})) == "wrong"


def test_an_edit_that_was_proven_names_its_code() -> None:
    told = tell(EVIDENCE + "`not FAULTY` in place of `FAULTY` gives PyTorch's numbers")
    assert told.expressions == ("FAULTY",)
    assert judge(make_cause("branch"), ("FAULTY",), told) == "right"


def test_what_a_finding_says_of_a_condition_a_number_and_a_summand_is_read() -> None:
    told = tell(EVIDENCE + "the function is relu in Paddle and gelu in PyTorch. `not f` decides it")
    assert judge(make_cause("branch"), ("not f",), told) == "right"
    told = tell(EVIDENCE + "scale is 0.125 in Paddle: 0.5 gives PyTorch's numbers")
    assert judge(make_cause("constant"), (), told) == "right"
    assert judge(make_cause("operator"), (), told) == "wrong"
    told = tell(EVIDENCE + "`f(x) - y` in place of `f(x)` gives PyTorch's numbers")
    assert judge(make_cause("summand"), (), told) == "right"


def test_code_that_is_cut_short_is_known_by_its_beginning() -> None:
    told = tell(
        EVIDENCE + "the mask comes from `paddle.triu( (paddle.full((2, 2), -np.inf …`: 1 more"
    )
    held = ("paddle.triu(paddle.full((2, 2), -np.inf), 2)",)
    assert judge(make_cause("argument", "diagonal", "triu"), held, told) == "right"
    assert judge(make_cause("argument", "diagonal", "triu"), ("paddle.tril(x)",), told) == "wrong"


def test_the_name_of_a_module_is_no_cause() -> None:
    message = (
        EVIDENCE + "PyTorch computes the output of dropout + x, Paddle -the output of dropout + x"
    )
    assert "dropout" not in tell(message).facts and "summand" in tell(message).facts


def test_a_tensor_without_a_counterpart_tells_of_itself() -> None:
    told = tell(
        "(8,): the Paddle model has no counterpart of this parameter",
        torch_name="dense.bias", paddle_name="proj",
    )  # fmt: skip
    assert judge(make_cause("setting", "bias_attr", "Linear"), (), told) == "right"
    told = tell(
        "(8,): the PyTorch model has no counterpart of this Paddle parameter",
        torch_name="dense", paddle_name="proj.bias",
    )  # fmt: skip
    assert judge(make_cause("setting", "bias_attr", "Linear"), (), told) == "right"


@pytest.mark.parametrize(
    ("line", "within", "near"),
    [
        ("a/modeling.py:12", 0, True), ("modeling.py:13", 0, False), ("modeling.py:13", 1, True),
        ("modeling.py:10", 0, True), ("modeling.py:8-11", 1, True), ("modeling.py:5-8", 1, False),
        ("other.py:12", 1, False), ("", 1, False),
    ],
)  # fmt: skip
def test_a_line_is_that_of_the_change_or_of_its_statement(
    line: str, within: int, near: bool
) -> None:
    assert is_near(line, mutant(), within) is near


def test_the_first_finding_is_scored() -> None:
    told = EVIDENCE + "softmax over axis 2 instead of axis 3"
    found = [finding(evidence=told), finding(paddle_name="elsewhere")]
    row = score(mutant(), Result("0000-axis-bert", "caught", found))
    assert (row.module, row.exact, row.line, row.cause) == (True, True, True, "right")
    row = score(mutant(), Result("0000-axis-bert", "caught", found[::-1]))
    assert (row.module, row.cause) == (False, "silent")


def test_what_was_missed_has_nothing_right() -> None:
    row = score(mutant(), Result("0000-axis-bert", "missed"))
    assert (row.outcome, row.module, row.line, row.cause) == ("missed", False, False, "silent")


def test_the_table_counts_and_gives_shares() -> None:
    rows = [Row(mutant(), "caught", True, True, True, "right", "repaired", ratio=2.0)]
    rows.append(Row(mutant(), "missed"))
    lines = make_table(rows, markdown=True)
    assert lines[2] == "| axis | 2 | 1 | 1 | 1 | 1 | 1 | 1 | 0 | 1 | 1 | 0 |"
    assert lines[-1].split(" | ")[2:5] == ["50%", "50%", "50%"]
    assert lines[-1].endswith(" 50% | 100% | 0% |")  # of those asked about
