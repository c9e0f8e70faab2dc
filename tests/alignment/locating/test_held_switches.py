"""A condition or a switch that is wrong leaves no call to compare: its line is named."""

from pathlib import Path

from reprod_align.alignment.locating.experiment import Experiment, _turn
from reprod_align.report import Finding
from tests.alignment.lines import torch_switches
from tests.alignment.lines.test_lines import first_of, masked_ids, plant
from tests.pairs.families import CASES, judged

import pytest

PORT = Path(__file__).parents[1] / "lines" / "paddle_switches.py"
# what is changed in the port, to what, and what the finding says
FAULTS = {
    "switch of a module": ("scaled=True,\n", "scaled=False,\n", "scaled is False in Paddle: True gives"),
    "number of a constructor": (
        "self.narrow = 0.25", "self.narrow = 0.5", "narrow is 0.5 in Paddle: 0.25 gives"),
    "choice in a constructor": ("if d == 8", "if d != 8", "`d != 8` decides it"),
    "condition negated": ("mask is not None", "mask is None", "gives PyTorch's numbers"),
    "one of two conditions": ("x.ndim == 3", "x.ndim != 3", "gives PyTorch's numbers"),
    "mask subtracted": ("scores + mask", "scores - mask", "`scores + mask` in place of"),
    "layer dropped": ("self.split(self.k(x))", "self.split(x)", "PyTorch calls `self.k(x)` here"),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    return first_of(torch_switches, port, "Model", *masked_ids())


def test_a_faithful_port_has_no_finding_and_nothing_is_turned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Experiment, "explain_switch", None)
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_line_and_what_mends_it_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line == f"{port}:{changed}"
    assert words in f"{finding.message} {finding.fix}"


def test_a_switch_that_both_modules_hold_alike_is_not_turned() -> None:
    held = {"scaled": True, "causal": False, "lone": True}
    turned = {one.name for one in _turn("attention", held, {"scaled": True, "causal": True})}
    assert turned == {"causal", "lone"}


def test_a_kernel_is_not_handed_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    turned: list[str] = []
    monkeypatch.setattr(Experiment, "is_gone", lambda self, _, one=None: turned.append(str(one)))
    outcome = judged(CASES["rnn/two layers for three"])
    assert outcome.named and not any("num_layers" in one for one in turned)
