"""One changed call on the way to a mask or an index: its line is named, and the edit that mends it."""

from pathlib import Path

from reprod_align.report import Finding
from tests.alignment.lines import torch_masks
from tests.alignment.lines.test_lines import first_of, masked_ids, plant
from tests.pairs.families import CASES, judged

import pytest

PORT = Path(__file__).parents[1] / "lines" / "paddle_masks.py"
# what is changed in the port, and to what
FAULTS = {
    "operator": ("* -1e4", "/ -1e4"),
    "difference": ("1.0 - kept", "1.0 + kept"),
    "triangle": ("tensor.triu", "tensor.tril"),
    "diagonal": ("-1e4), 1)", "-1e4), 2)"),
    "axis": ("axis=1", "axis=0"),
    "ones": ("ones_like(ids)", "zeros_like(ids)"),
    "number": ("self.places(counted)", "self.places(counted - 1)"),
}


def find_first(port: Path) -> Finding | None:
    return first_of(torch_masks, port, "Encoder", *masked_ids())


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.every_edit
def test_the_edit_that_mends_it_is_found_at_its_line(name: str, tmp_path: Path) -> None:
    port, changed = plant(PORT, *FAULTS[name], tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.edit is not None
    assert (finding.paddle_line, finding.edit.line) == (f"{port}:{changed}", changed)


def test_what_mends_one_layer_is_a_further_place_in_the_next() -> None:
    outcome = judged(CASES["decoder/sees one token ahead"])
    assert outcome.named and "= also: 1 more place" in outcome.text
