"""A condition or a switch that is wrong leaves no call to compare: it is turned, and its line is named."""

from pathlib import Path

from reprod_align.alignment.locating.replacing.alterations import Alterations, describe_alteration
from reprod_align.model.source.alteration import Switch
from reprod_align.report import Finding
from tests.alignment.lines import torch_switches
from tests.alignment.lines.test_lines import first_of, masked_ids, plant
from tests.pairs.families import CASES, judged

import pytest

PORT = Path(__file__).parents[2] / "lines" / "paddle_switches.py"
# what is changed in the port, to what, and what the finding says
FAULTS = {
    "switch of a module": ("scaled=True,\n", "scaled=False,\n", "scaled is False in Paddle: True gives"),
    "condition negated": ("mask is not None", "mask is None", "`mask is not None` in place of"),
    "one of two conditions": ("x.ndim == 3", "x.ndim != 3", "`x.ndim == 3` in place of `x.ndim != 3`"),
    "switch handed over": ("first=True", "first=False", "`first=True` in place of `first=False`"),
    "mask subtracted": ("scores + mask", "scores - mask", "it raises the scores that PyTorch hides"),
    "layer dropped": ("self.split(self.k(x))", "self.split(x)", "PyTorch calls `self.k(x)` here"),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    return first_of(torch_switches, port, "Model", *masked_ids())


def test_a_faithful_port_has_no_finding_and_nothing_is_turned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Alterations, "find", None)
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_line_and_what_mends_it_are_named(name: str, tmp_path: Path) -> None:
    before, after, words = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line == f"{port}:{changed}"
    assert words in finding.message


def test_a_kernel_is_not_handed_another_size(monkeypatch: pytest.MonkeyPatch) -> None:
    turned: list[str] = []
    monkeypatch.setattr(Alterations, "_mends", lambda self, one, *_: turned.append(str(one)))
    outcome = judged(CASES["rnn/two layers for three"])
    assert outcome.named and not any("num_layers" in one for one in turned)


def test_a_number_is_shown_as_it_stands() -> None:
    words = describe_alteration(Switch("layer", "scale", 0.5, 0.25))
    assert words == "scale is 0.5 in Paddle: 0.25 gives PyTorch's numbers"
