"""The judge of a text: which places differ with it, and whether that is progress."""

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

from reprod_align.explain.code import Edit
from reprod_align.explain.edits import Candidate
from reprod_align.explain.trials import Trial
from reprod_align.mending.bench import Outcome, list_homes
from tests.mending.pairs import open_bench, write_pair

import pytest

NORM = ("forward", "norm", "its output")
MODEL = ("forward", "the model", "the value it hands to out")
LATER = ("forward", "the model", "its output")
LOSS = ("loss", "the model", "")


def outcome(*faults: tuple[str, str, str], called: Collection[str] = ()) -> Outcome:
    return Outcome(not faults, True, dict.fromkeys(faults, 0.1), called=frozenset(called))


def test_a_text_is_judged_and_the_files_stay(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an argument", "a function")
    before = path.read_text()
    with open_bench(path) as bench:
        assert {fault[1] for fault in bench.judge({}).faults} == {"norm", "the model"}
        texts = {str(path): bench.files.read(str(path), {}).replace("1e-3", "1e-12")}
        assert {fault[1] for fault in bench.judge(texts).faults} == {"the model"}
        broken = {str(path): before.replace("self.norm(x)", "self.norm(x, 1, 2)")}
        assert not bench.judge(broken).ran
        assert not bench.judge({str(path): "def (:"}).ran
        assert bench.judge({}).faults and bench.seconds > 0
    assert path.read_text() == before


CHOICE = """
def paddle_model():
    from port_faulty import Net
    from port_right import Net as Other

    return (Net or Other)()


def inputs"""


def test_another_implementation_in_the_ports_place_mends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One word of the pair's own file chooses a port that is right: it would be no repair."""
    monkeypatch.syspath_prepend(tmp_path)
    path = write_pair(tmp_path)
    head, _, rest = path.read_text().partition("\ndef paddle_model():\n")
    right = dedent(rest.partition("\n    return Net()")[0])
    (tmp_path / "port_right.py").write_text(right)
    (tmp_path / "port_faulty.py").write_text(right.replace("paddle.tanh", "F.sigmoid"))
    path.write_text(head + CHOICE + rest.partition("def inputs")[2])
    with open_bench(path) as bench:
        port = bench.make_port()
        assert list_homes(port) == {str(tmp_path / "port_faulty.py")}
        chosen = {str(path): bench.files.read(str(path), {}).replace("Net or", "Net and")}
        assert bench.judge(chosen).passed  # anything may be chosen
        kept = replace(bench, homes=list_homes(port))
        assert not kept.judge(chosen).ran and kept.judge({}).ran
        mended = {str(tmp_path / "port_faulty.py"): right}
        bench.files.read(str(tmp_path / "port_faulty.py"), {})
        assert kept.judge(mended).passed


def test_progress_is_a_fault_that_is_gone_and_none_that_is_new() -> None:
    before = outcome(NORM, MODEL)
    assert outcome(MODEL).mends(before, NORM) and outcome().mends(before, NORM)
    assert outcome(MODEL, LOSS).mends(before, NORM)  # a later stage, which the fault hid
    assert not outcome(NORM).mends(before, NORM)
    assert not outcome(MODEL, ("forward", "out", "its output")).mends(before, NORM)
    assert not Outcome(error="it raises").mends(before, NORM)


def test_an_edit_mends_though_the_port_raises_at_a_later_stage_then() -> None:
    raises = ("backward", "the model", "the Paddle backward pass raises ValueError")
    hidden = Outcome(False, False, {raises: float("inf")})
    assert hidden.mends(outcome(MODEL), MODEL)
    assert not hidden.mends(Outcome(False, True, {raises: 1.0, NORM: 0.1}), raises)
    assert not Outcome(False, False, {LATER: float("inf")}).mends(outcome(MODEL), MODEL)
    idle = ("weights", "head.weight", "")  # taken out, it is missed where the port calls it
    assert not Outcome(False, False, {LATER: float("inf")}).mends(outcome(idle), idle)


def test_a_call_too_many_mends_nothing(tmp_path: Path) -> None:
    """Its module's calls stand for none of PyTorch's then, and what differs there is not seen."""
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        before = bench.judge({})
        text = bench.files.read(str(path), {})
        twice = bench.judge({str(path): text.replace("self.norm(x)", "self.norm(self.norm(x))")})
    assert "norm" in before.called and twice.ran and "norm" not in twice.called
    assert not any(twice.mends(before, fault) for fault in before.faults)


def test_of_two_mistakes_the_first_is_mended_if_the_difference_begins_later(tmp_path: Path) -> None:
    file = str(tmp_path / "net.py")
    trial = Trial(file, Candidate("operator", Edit(0, 1, "<"), 4, "<=", "<"))

    def begin(line: int, *more: tuple[str, str, str], name: str = file) -> Outcome:
        return replace(outcome(MODEL, *more), begins={MODEL: (name, line)})

    before = begin(4)
    assert begin(9).moves(before, MODEL, trial, 0)
    assert not begin(4).moves(before, MODEL, trial, 0) and not begin(3).moves(
        before, MODEL, trial, 0
    )
    assert not begin(5).moves(before, MODEL, trial, added=1)  # the same statement, pushed down
    assert not begin(9, NORM).moves(before, MODEL, trial, 0)  # another fault is new
    assert not begin(9, name="other.py").moves(before, MODEL, trial, 0)
    assert not outcome(MODEL).moves(before, MODEL, trial, 0)


def test_another_value_of_the_same_place_counts_only_if_asked_for() -> None:
    before = outcome(MODEL)
    assert not outcome(LATER).mends(before, MODEL)
    assert outcome(LATER).mends(before, MODEL, uncovers=True)
    assert not outcome(MODEL).mends(outcome(LATER), LATER, uncovers=True)  # the output comes last


def test_train_mode_is_judged_where_eval_mode_agrees() -> None:
    trained = ("forward", "norm", "running statistic running_mean differs after one step")
    found = Outcome(False, True, {trained: 0.1}, agrees_in_eval=True)
    assert found.mends(outcome(MODEL), MODEL)
    assert not found.mends(Outcome(False, True, {MODEL: 0.1}, agrees_in_eval=True), MODEL)


def test_an_output_of_another_shape_is_no_uncovered_fault() -> None:
    torn = Outcome(False, True, {LATER: float("inf")})
    assert not torn.mends(outcome(MODEL), MODEL, uncovers=True)


def test_what_was_mended_may_not_come_back() -> None:
    assert not outcome(NORM).mends(outcome(NORM, MODEL), MODEL, mended=[NORM])


def test_both_frameworks_compute_in_one_thread(tmp_path: Path) -> None:
    import torch

    count = torch.get_num_threads()
    try:
        with open_bench(write_pair(tmp_path)) as bench:
            bench.use_one_thread()
            assert torch.get_num_threads() == 1 and bench.judge({}).passed
    finally:
        torch.set_num_threads(count)


def test_an_edit_keeps_the_modules_that_are_called_and_may_call_another() -> None:
    other, called = ("forward", "new", "its output"), {"out", "norm"}
    before = outcome(NORM, MODEL, called=called)
    assert outcome(MODEL, called=called).mends(before, NORM)
    assert not outcome(MODEL, called={"out"}).mends(before, NORM)
    assert not outcome(MODEL, other, called=called).mends(before, NORM)
    assert outcome(MODEL, other, called={*called, "new"}).mends(before, NORM)
    nowhere = outcome(LOSS)  # no place was sought: all that is called is no news
    assert not outcome(other, called={"new"}).mends(nowhere, LOSS)
