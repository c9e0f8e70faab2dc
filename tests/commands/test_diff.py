"""`reprod-align diff`: two traces, from their files alone."""

import json
from pathlib import Path

from reprod_align.commands import diff
from reprod_align.errors import ReprodError
from reprod_align.traces import RecordedTrace, TraceTensor, save_trace
from tests.commands.asked import run

import numpy as np
import pytest


def write_trace(path: Path, *modules: str, value: float = 1.0) -> Path:
    tensors = tuple(
        TraceTensor(module, 0, order, "", "output", "float64", (3,), True, False, False,
                    np.array([value, 2.0, 3.0]))
        for order, module in enumerate(modules)
    )  # fmt: skip
    save_trace(path, RecordedTrace("PyTorch", "whole", tensors))
    return path


def test_a_changed_output_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, same = write_trace(tmp_path / "a", "fc"), write_trace(tmp_path / "b", "fc")
    assert run(diff, first, same) == 0
    capsys.readouterr()
    other = write_trace(tmp_path / "c", "fc", value=1.5)
    assert run(diff, first, other, "--json") == 1
    assert not json.loads(capsys.readouterr().out)["passed"]


def test_a_module_of_one_trace_alone(tmp_path: Path) -> None:
    first, more = write_trace(tmp_path / "a", "fc"), write_trace(tmp_path / "b", "fc", "head")
    assert run(diff, first, more) == 1
    assert run(diff, first, more, "--allow-unpaired") == 0


def test_names_are_mapped_and_a_missing_trace_is_refused(tmp_path: Path) -> None:
    first, other = write_trace(tmp_path / "a", "fc"), write_trace(tmp_path / "b", "linear")
    with pytest.raises(ReprodError, match="give a name map"):
        run(diff, first, other)
    names = tmp_path / "names.json"
    names.write_text('{"fc": "linear"}')
    assert run(diff, first, other, "--name-map", names) == 0
    with pytest.raises(ReprodError, match="none"):
        run(diff, first, tmp_path / "none")
