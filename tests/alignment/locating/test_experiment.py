"""Edits that are tried at a fault: the one that mends is named, at its line, and nothing stays of any."""

import importlib.util
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from reprod_align import align
from reprod_align.alignment import compare_pair
from reprod_align.alignment.locating import experiment
from reprod_align.explain.code import Code
from reprod_align.explain.code import Edit as Span
from reprod_align.pair import PairSpec, announce_work, paddle_side, torch_side
from reprod_align.report import Report

import numpy as np
import pytest

REFERENCE = """\
import torch
from torch import nn


class Gelu(nn.Module):
    def forward(self, x):
        inner = (2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)
        return 0.5 * x * (1 + torch.tanh(inner))


class Chosen(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.act = Gelu()

    def forward(self, x):
        return self.two(self.act(self.one(x)))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(6, 6)
        self.two = nn.Linear(6, 6)

    def mix(self, h):
        scores = h @ h.transpose(1, 2)
        return torch.softmax(scores / 6**0.5, dim=-1) @ h

    def forward(self, x):
        h = torch.tanh(self.one(x))
        h = self.mix(h) + x
        return self.two(h)
"""
PORT = """\
import paddle
from paddle import nn
from paddle.nn import functional as F


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(6, 6)
        self.two = nn.Linear(6, 6)

    def mix(self, h):
        scores = h @ h.transpose([0, 2, 1])
        return F.softmax(scores / 6**0.5, axis=-1) @ h

    def forward(self, x):
        h = paddle.tanh(self.one(x))
        h = self.mix(h) + x
        return self.two(h)
"""
CHOSEN = """\
from paddle import nn
from paddle.nn import functional as F


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(6, 6), nn.Linear(6, 6)
        self.act = F.gelu

    def forward(self, x):
        return self.two(self.act(self.one(x), approximate=True))
"""
FAULTS = {
    "an argument of a function that the constructor chooses": (
        "approximate=True",
        "approximate=False",
        12,
    ),
    "a function and a factor in one": ("scores / 6**0.5", "(scores * scores) / 6**0.5", 14),
    "a summand": ("self.mix(h) + x", "self.mix(h) + x + x * x", 18),
    "a gradient that is cut": ("self.mix(h) + x", "self.mix(h).detach() + x", 18),
}


def load(path: Path, text: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("fault", FAULTS)
def test_the_edit_that_mends_is_named_at_its_line(fault: str, tmp_path: Path) -> None:
    right, wrong, line = FAULTS[fault]
    text, name = (PORT, "Net") if right in PORT else (CHOSEN, "Chosen")
    assert text.count(right) == 1
    made = getattr(load(tmp_path / "experiment_reference.py", REFERENCE), name)()
    port = load(tmp_path / "experiment_port.py", text.replace(right, wrong))
    x = np.random.default_rng(0).normal(size=(2, 5, 6))
    report = align(made, port.Net(), {"x": x})
    edit = report.findings[0].edit
    assert edit is not None
    assert (edit.file, edit.line, edit.level) == (
        str(tmp_path / "experiment_port.py"),
        line,
        "tried",
    )
    assert edit.before in text.replace(right, wrong).splitlines()[line - 1]
    assert report.findings[0].paddle_line == f"{edit.file}:{line}"
    assert str(edit) in report.summary()
    assert (tmp_path / "experiment_port.py").read_text() == text.replace(right, wrong)
    code = Code((tmp_path / "experiment_port.py").read_text())
    start, end = (
        code.offset(edit.line, edit.column),
        code.offset(edit.last_line, edit.last_column),
    )
    mended = load(tmp_path / "experiment_mended.py", code.splice([Span(start, end, edit.after)]))
    assert align(made, mended.Net(), {"x": x}).passed


def test_sides_that_announce_their_work_are_given_edits_too(tmp_path: Path) -> None:
    """As the command line has them: every trial went by in silence once."""
    right, wrong, line = FAULTS["a summand"]
    reference = load(tmp_path / "experiment_reference.py", REFERENCE)
    port = load(tmp_path / "experiment_port.py", PORT.replace(right, wrong))
    sides = torch_side(reference.Net()), paddle_side(port.Net())
    x = np.random.default_rng(0).normal(size=(2, 5, 6))
    report = compare_pair(PairSpec(*map(announce_work, sides), {"x": x}))
    edit = report.findings[0].edit
    assert edit is not None and edit.line == line


MASKED = """\
import paddle
from paddle import nn


class Block(nn.Layer):
    def forward(self, x, keep):
        scores = x @ x.transpose([0, 2, 1]) + (1 - keep).unsqueeze(1) * -1e9
        return paddle.nn.functional.softmax(scores, axis=-1) @ x


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.one, self.block, self.two = nn.Linear(6, 6), Block(), nn.Linear(6, 6)


def run_twice(net, x, keep):
    h = paddle.tanh(net.one(x))
    for number in (0, 1):
        h = net.block(h, keep if number == 0 else paddle.ones_like(keep))
    return net.two(h)


Net.forward = run_twice
"""


def test_a_forward_from_elsewhere_is_edited_and_its_module_named(tmp_path: Path) -> None:
    right = MASKED.replace("keep if number == 0 else paddle.ones_like(keep)", "keep")
    torch_text = right.replace("paddle.nn.functional", "torch").replace("axis=", "dim=")
    torch_text = torch_text.replace("transpose([0, 2, 1])", "transpose(1, 2)")
    torch_text = torch_text.replace("from paddle", "from torch").replace("paddle", "torch")
    reference = load(tmp_path / "experiment_reference.py", torch_text.replace("Layer", "Module"))
    port = load(tmp_path / "experiment_port.py", MASKED)
    keep = np.array([[1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0]])
    x = np.random.default_rng(0).normal(size=(2, 4, 6))
    found = align(reference.Net(), port.Net(), {"x": x, "keep": keep}).findings[0]
    assert found.edit is not None, found
    assert (found.edit.line, found.edit.after) == (20, "keep")
    assert (found.torch_name, found.paddle_name) == ("", "")


NORMED_BEFORE = """\
import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.norm = nn.LayerNorm(6)

    def forward(self, ids):
        return self.norm(self.words(ids) * 2.0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(6, 5)

    def forward(self, h):
        return torch.tanh(self.out(h))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings, self.encoder = Embeddings(), Encoder()

    def forward(self, ids):
        return self.encoder(self.embeddings(ids))
"""
NORMED_AFTER = """\
import paddle
from paddle import nn


class Embeddings(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(9, 6)

    def forward(self, ids):
        return paddle.roll(self.words(ids) * 2.0, 1, -1)


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(6), nn.Linear(6, 5)

    def forward(self, h):
        return paddle.tanh(self.out(self.norm(h)))


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embeddings, self.encoder = Embeddings(), Encoder()

    def forward(self, ids):
        return self.encoder(self.embeddings(ids))
"""


def test_a_layer_that_the_port_calls_in_another_module_is_not_said_to_lack(tmp_path: Path) -> None:
    reference = load(tmp_path / "experiment_reference.py", NORMED_BEFORE)
    port = load(tmp_path / "experiment_port.py", NORMED_AFTER)
    ids = np.random.default_rng(0).integers(0, 9, (3, 4))
    found = align(reference.Net(), port.Net(), {"ids": ids}).findings[0]
    lines = NORMED_AFTER.splitlines()
    line = next(at for at, text in enumerate(lines, 1) if "roll" in text)
    assert str(found.paddle_line).endswith(f":{line}"), found
    assert "self.norm" not in found.cause


def align_summand(tmp_path: Path) -> Report:
    """Return the report of the pair with the fault "a summand"."""
    right, wrong, _ = FAULTS["a summand"]
    reference = load(tmp_path / "experiment_reference.py", REFERENCE)
    port = load(tmp_path / "experiment_port.py", PORT.replace(right, wrong))
    return align(reference.Net(), port.Net(), {"x": np.ones((1, 3, 6))})


def test_an_edit_that_fits_the_given_length_alone_is_not_offered(tmp_path: Path) -> None:
    """PyTorch multiplies by the length, by a function that Paddle lacks: 4.0 is right for length 4."""
    torch_text = REFERENCE.replace("h = self.mix(h) + x", "h = h * torch.sym_int(h.shape[1]) + x")
    port_text = PORT.replace("h = self.mix(h) + x", "h = h * 2.0 + x")
    reference = load(tmp_path / "experiment_reference.py", torch_text)
    port = load(tmp_path / "experiment_port.py", port_text)
    x = np.random.default_rng(0).normal(size=(2, 4, 6))
    report = align(reference.Net(), port.Net(), {"x": x})
    line = port_text.splitlines().index("        h = h * 2.0 + x") + 1
    assert report.findings[0].edit is None
    assert str(report.findings[0].paddle_line).endswith(f":{line}")


def test_nothing_is_said_where_no_edit_mends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment.Experiment, "_mends", lambda *args: False)
    report = align_summand(tmp_path)
    assert not report.passed
    assert report.findings[0].edit is None and not report.remarks


def test_copies_that_all_end_are_spoken_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "use_one_thread", lambda *sides: os._exit(1))
    report = align_summand(tmp_path)
    assert report.findings[0].edit is None
    assert sum("no edit could be tried" in remark for remark in report.remarks) == 1


def test_a_run_that_is_slow_once_is_timed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def note_slowly(files: Any, run: Callable[[], object]) -> Any:
        end = time.process_time() + 1.2 * experiment.SLOW
        while time.process_time() < end:
            pass
        return note_lines(files, run)

    note_lines = experiment.note_lines
    monkeypatch.setattr(experiment, "note_lines", note_slowly)
    report = align_summand(tmp_path)
    assert report.findings[0].edit is not None and not report.remarks
