"""The search: candidates near the finding first, each text once, and the edit that mends."""

import gc
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from reprod_align.explain.code import Edit
from reprod_align.explain.edits import Candidate
from reprod_align.explain.scope import Scope, Sources, find_scope
from reprod_align.explain.trials import Trial, list_trials
from reprod_align.mending import search
from reprod_align.mending.bench import Outcome
from reprod_align.mending.search import (
    Probe,
    RunProbe,
    WeightsProbe,
    find_edit,
    make_probe,
)
from reprod_align.traces.recorder import ModuleCall
from tests.mending.pairs import FAULTS, open_bench, write_pair

import pytest


def test_the_edit_is_found_and_what_is_left_is_told(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        report, before = bench.judge_fully({}), bench.judge({})
        fault = next(iter(before.faults))
        port = bench.make_port()
        scope = find_scope(report.findings[0], bench.reference, port, report.pairs, Sources())
        trials = list(list_trials(bench.files, scope, {}))
        assert trials[0].candidate.line == scope.place[1]
        found = find_edit(bench, {}, scope, fault, before, [])
        assert found.found is not None and found.tried >= 1
        made = bench.files.apply({}, found.found)
        assert bench.judge(made).passed
        after = made[str(path)]
    right, wrong = FAULTS["an axis"]
    assert after == path.read_text().replace(wrong, right)


def make_trial(text: str) -> Trial:
    return Trial("net.py", Candidate("missing-summand", Edit(0, 0, text), 1, "", text))


def test_an_edit_with_which_train_mode_agrees_too_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A summand behind a dropout mends eval mode; the one before it mends both."""
    fault, late = ("forward", "net", "its output"), ("forward", "drop", "its output")
    behind = Outcome(False, True, {late: 0.1}, agrees_in_eval=True)
    trials = make_trial("behind"), make_trial("before")
    answers = [(trials[0], behind, 0.0), (trials[1], Outcome(True, True), 0.0)]
    monkeypatch.setattr(search, "make_probe", lambda *given: None)
    monkeypatch.setattr(search, "_holds", lambda *given: True)

    def find(given: list[Any]) -> Any:
        monkeypatch.setattr(search, "try_in_order", lambda *rest: enumerate(given))
        bench: Any = SimpleNamespace(seconds=0.0, use_one_thread=None)
        return search.find_edit(bench, {}, Scope([], ("", 0), {}, []), fault, before, [])

    before = Outcome(False, True, {fault: 0.1})
    assert find(answers).found == trials[1]
    assert find(answers[:1]).found == trials[0]
    raises = Outcome(False, False, {("backward", "net", "raises"): 1.0}, agrees_in_eval=True)
    before = replace(before, agrees_in_eval=True)
    assert find([(trials[0], raises, 0.0), answers[1]]).found == trials[1]
    assert find([(trials[0], raises, 0.0)]).found == trials[0]


def test_an_edit_that_gives_weights_another_shape_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pair(tmp_path)
    right = text = path.read_text()
    for name in ("query", "key"):
        made = f"self.{name} = nn.Linear(6, 6)"
        at = text.rindex(made)
        text = text[:at] + made.replace("6)", "12)") + text[at + len(made) :]
    path.write_text(text)
    with open_bench(path) as bench:
        bench.files.read(str(path), {})
        before = bench.judge({})
        probe = make_probe(bench, {}, next(iter(before.faults)), before)
        assert isinstance(probe, Probe)
        assert not probe.may_mend({str(path): text.replace("axis=-1", "axis=-2")})
        # the look pairs the weights as they were: it may not go on
        monkeypatch.setattr(search, "replace", lambda *given, **named: pytest.fail("it went on"))
        assert probe.may_mend({str(path): right})


def test_behind_a_port_that_raised_the_edit_that_leaves_least_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fault, hidden = ("forward", "net", "it raises"), ("forward", "mask", "its output")
    own = ("forward", "net", "its output")
    answers = [
        (make_trial("wrong"), Outcome(False, True, {own: 0.1, hidden: 0.1}), 0.0),
        (make_trial("right"), Outcome(False, True, {hidden: 0.1}), 0.0),
        (make_trial("raises too"), Outcome(False, False, {fault: math.inf}), 0.0),
    ]
    monkeypatch.setattr(search, "make_probe", lambda *given: None)
    monkeypatch.setattr(search, "try_in_order", lambda *rest: enumerate(answers))
    bench: Any = SimpleNamespace(seconds=0.0, use_one_thread=None)
    raised = Outcome(False, False, {fault: math.inf})
    scope = Scope([], ("", 0), {}, [])
    assert search.find_edit(bench, {}, scope, fault, raised, []).found == answers[1][0]
    ran = Outcome(False, True, {fault: 0.1})
    assert search.find_edit(bench, {}, scope, fault, ran, []).found is None


def test_no_edit_counts_after_which_an_output_is_held_against_nothing() -> None:
    fault = ("forward", "net", "its output")
    before = Outcome(False, True, {fault: 0.1}, unpaired=frozenset({"states"}))
    assert Outcome(True, True, unpaired=frozenset({"states"})).mends(before, fault)
    assert not Outcome(True, True, unpaired=frozenset({"pooled"})).mends(before, fault)


def test_of_a_port_that_raises_only_what_runs_is_judged(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    right = path.read_text()
    path.write_text(right.replace("axis=-2", "axis=9"))
    with open_bench(path) as bench:
        bench.files.read(str(path), {})
        before = bench.judge({})
        (fault,) = before.faults
        probe = make_probe(bench, {}, fault, before)
        assert isinstance(probe, RunProbe) and not before.ran
        assert probe.may_mend({str(path): right})
        assert not probe.may_mend({str(path): right.replace("axis=-2", "axis=7")})


SAME = """    class Same(paddle.autograd.PyLayer):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad, None

"""


def test_of_a_port_that_raises_in_its_backward_pass_only_what_runs_is_judged(
    tmp_path: Path,
) -> None:
    path = write_pair(tmp_path)
    start, _, end = path.read_text().partition("    class Net(nn.Layer):")
    path.write_text(
        f"{start}{SAME}    class Net(nn.Layer):{end.replace('(scores, axis', '(Same.apply(scores), axis')}"
    )
    with open_bench(path) as bench:
        text = bench.files.read(str(path), {})
        before = bench.judge({})
        (fault,) = before.faults
        probe = make_probe(bench, {}, fault, before)
        assert fault[0] == "backward" and isinstance(probe, RunProbe) and probe.training
        assert probe.may_mend({str(path): text.replace("grad, None", "grad")})
        assert not probe.may_mend({str(path): text.replace("grad, None", "None, grad")})


def test_of_a_tie_that_is_missing_only_what_makes_another_port_is_judged(tmp_path: Path) -> None:
    path = write_pair(tmp_path)
    fault = ("weights", "proj.weight", "")
    with open_bench(path) as bench:
        text = bench.files.read(str(path), {})
        probe = make_probe(bench, {}, fault, Outcome(ran=True))
        assert isinstance(probe, WeightsProbe)
        made = "self.proj = nn.Linear(6, 6)"
        port, tie = text.rindex(made), f"{made}\n            self.proj.weight = self.query.weight"
        assert probe.may_mend({str(path): text[:port] + text[port:].replace(made, tie)})
        assert not probe.may_mend({str(path): text.replace("axis=-1", "axis=-2")})
        assert not probe.may_mend({str(path): text[:port] + text[port:].replace(made, "0 / 0")})
        lacking = make_probe(bench, {}, fault, Outcome(ran=True), lacks_tie=True)
        bare = "self.proj = nn.Linear(6, 6, bias_attr=False)"
        without = {str(path): text[:port] + text[port:].replace(made, bare)}
        assert lacking is not None and probe.may_mend(without) and not lacking.may_mend(without)
        assert lacking.may_mend({str(path): text[:port] + text[port:].replace(made, tie)})


def test_only_of_a_port_that_raises_the_form_of_values_is_tried(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    path.write_text(path.read_text().replace("axis=-2", "axis=9"))
    with open_bench(path) as bench:
        report, before = bench.judge_fully({}), bench.judge({})
        port = bench.make_port()
        scope = find_scope(report.findings[0], bench.reference, port, report.pairs, Sources())
        kinds = [
            [it.candidate.kind for it in list_trials(bench.files, scope, {}, raises=raises)]
            for raises in (True, False)
        ]
        assert report.findings[0].kind == "port-raises"
        assert "form" in kinds[0] and "form" not in kinds[1]
        found = find_edit(bench, {}, scope, next(iter(before.faults)), before, []).found
        assert found is not None
        assert "axis=-1" in bench.files.apply({}, found)[str(path)]


def test_an_edit_that_mends_passes_and_one_that_does_not_is_turned_down(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        before = bench.files.read(str(path), {})
        outcome = bench.judge({})
        (fault,) = outcome.faults
        probe = make_probe(bench, {}, fault, outcome)
        assert isinstance(probe, Probe) and probe.known
        assert probe.may_mend({str(path): before.replace("axis=-2", "axis=-1")})
        assert not probe.may_mend({str(path): before})
        assert not probe.may_mend({str(path): before.replace("axis=-2", "axis=9")})  # it raises
        assert make_probe(bench, {}, ("loss", "the model", ""), outcome) is None


@pytest.mark.parametrize("then", ["", " + paddle.ones([9])"], ids=["it runs", "it raises"])
def test_a_search_of_a_thousand_edits_keeps_no_tensors_of_theirs(then: str, tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        bench.files.read(str(path), {})
        before = bench.judge({})
        probe = make_probe(bench, {}, next(iter(before.faults)), before)
        assert isinstance(probe, Probe)
        text = path.read_text().replace(
            "paddle.tanh(self.proj(mixed))", f"paddle.tanh(self.proj(mixed)){then}"
        )

        def count_calls() -> int:
            assert not probe.may_mend({str(path): text + f"# {len(counts)}\n"})
            gc.collect()
            return sum(type(one) is ModuleCall for one in gc.get_objects())

        counts: list[int] = []
        for _ in range(3):
            counts.append(count_calls())
    assert counts[0] == counts[1] == counts[2] > 0
