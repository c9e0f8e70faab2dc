"""One changed call on the way to a mask or an index: its line is named, and the change that mends it."""

from pathlib import Path
from typing import Any

from reprod_align.alignment.locating.changes import Trial
from reprod_align.report import Finding
from tests.alignment.lines import torch_masks
from tests.alignment.lines.test_lines import first_of, masked_ids, plant
from tests.pairs.families import CASES, judged

import pytest

PORT = Path(__file__).parents[1] / "lines" / "paddle_masks.py"
# what is changed in the port, to what, and what the finding says
FAULTS = {
    "operator": ("* -1e4", "/ -1e4", "the mask comes from", "`* -10000` in place of `/ -10000`"),
    "difference": ("1.0 - kept", "1.0 + kept", "the mask comes from", "in place of `+ 1`"),
    "triangle": ("tensor.triu", "tensor.tril", "the mask comes from", "triu of diagonal 1 in place of tril"),
    "diagonal": ("-1e4), 1)", "-1e4), 2)", "the mask comes from", "triu of diagonal 1 in place of"),
    "axis": ("axis=1", "axis=0", "the index comes from", "cumsum over axis 1 in place of cumsum over axis 0"),
    "ones": ("ones_like(ids)", "zeros_like(ids)", "the index comes from", "1 in place of 0"),
    "call dropped": ("paddle.cumsum(ones, axis=1)", "ones", "the index comes from", "cumsum of it"),
    "number": ("self.places(counted)", "self.places(counted - 1)", "the index comes from", ""),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    return first_of(torch_masks, port, "Encoder", *masked_ids())


def test_a_faithful_port_has_no_finding_and_nothing_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Trial, "find_change", None)
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_changed_call_is_named(name: str, tmp_path: Path) -> None:
    before, after, *words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line == f"{port}:{changed}"
    for piece in words:
        assert piece in finding.message
    assert finding.cause.endswith(("PyTorch's numbers", "(a call is missing)"))


def test_what_mends_no_layer_is_tried_in_the_first_alone() -> None:
    case = CASES["encoder/TorchStock: mask of -1 for -inf"]
    tried: list[int] = []
    own = Trial._choose

    def choose(self: Trial, attempts: Any, *given: Any) -> Any:
        tried.append(len(attempts))
        return own(self, attempts, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trial, "_choose", choose)
        assert not judged(case).passed
    assert tried[0] and not any(tried[1:])


def test_what_mends_one_layer_is_tried_in_the_next_by_its_own_call() -> None:
    outcome = judged(CASES["decoder/sees one token ahead"])
    assert outcome.named and "= also: 1 more place" in outcome.text


def test_what_mends_nothing_in_eval_mode_is_not_tried_in_train_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[bool] = []

    def fail(self: Trial, *given: Any) -> None:
        tried.append(self.training)

    monkeypatch.setattr(Trial, "_try", fail)
    before, after, *_ = FAULTS["operator"]
    port, _ = plant(PORT, before, after, tmp_path)
    assert find_first(port) is not None
    assert tried and not any(tried)
