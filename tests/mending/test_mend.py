"""Ports with known faults are mended: the patch makes them faithful on batches that no search has seen."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reprod_align.explain.code import Edit
from reprod_align.explain.edits import Candidate
from reprod_align.explain.scope import Scope
from reprod_align.explain.trials import Texts, Trial
from reprod_align.mending.bench import Bench, Fault
from reprod_align.mending.mend import mend_port
from reprod_align.mending.result import Mended
from reprod_align.mending.search import Search
from reprod_align.pair.file import PairFile, open_file
from tests.mending.pairs import FAULTS, LAYERS, PAIR, SETTINGS, open_bench, write_pair

import pytest

SEVERAL = [
    ("an argument", "a function", "a summand left out"),
    ("an axis", "the loss"),
    ("a constant", "an axis"),  # both lead to one value: neither alone makes it agree
]


def mend(path: Path) -> Mended:
    with open_file(path, PairFile) as file:
        return mend_port(file.pair(), lambda: file.side("paddle"))


@pytest.mark.parametrize("faults", [*((name,) for name in FAULTS), *SEVERAL], ids="+".join)
def test_faults_are_mended(
    faults: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_pair(tmp_path, *faults)
    before = path.read_text()
    found = mend(path)
    assert not found.first.passed
    assert found.passed and found.verdict == "faithful", found.summary()
    assert found.proof.level == "safe" and len(found.proof.batches) >= 3
    assert 1 <= len(found.edits) <= len(faults) and found.left == ()
    assert path.read_text() == before  # the patch alone changes it
    subprocess.run(["patch", "-p1", "-s"], input=found.patch, text=True, check=True, cwd=tmp_path)
    assert mend(path).edits == () and mend(path).passed


@pytest.mark.edits(300)
def test_the_edit_that_align_has_found_is_tried_first(tmp_path: Path) -> None:
    found = mend(write_pair(tmp_path, "an axis"))
    assert found.passed and found.tried == 1


HEAD = """import paddle
import torch
import torch.nn as nn


class Torch(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(9, 4), nn.Module()
        self.head.decoder = nn.Linear(4, 9, bias=False)
        self.head.decoder.weight = self.words.weight

    def forward(self, ids):
        return self.head.decoder(self.words(ids))


class Head(paddle.nn.Layer):
    def __init__(self, weight=None):
        super().__init__()
        self.decoder_weight = self.create_parameter([9, 4]) if weight is None else weight

    def forward(self, x):
        return paddle.matmul(x, self.decoder_weight, transpose_y=True)


class Port(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.words = paddle.nn.Embedding(9, 4)
        self.head = Head(weight=None)

    def forward(self, ids):
        return self.head(self.words(ids))


def torch_model():
    return Torch()


def paddle_model():
    return Port()


def inputs():
    return (torch.arange(6).reshape(2, 3).numpy(),)
"""


def test_a_tie_is_mended_whose_parameter_another_module_holds(tmp_path: Path) -> None:
    path = tmp_path / "pair_tied.py"
    path.write_text(HEAD)
    found = mend(path)
    assert found.passed and "Head(weight=self.words.weight)" in found.patch, found.summary()


def test_an_edit_on_trial_is_taken_back_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its second mistake is never found: the search ends, and the port is left as it came."""
    path = write_pair(tmp_path, "an axis")
    at = path.read_bytes().rindex(b"0.5")
    first = Trial(str(path), Candidate("number", Edit(at, at + 3, "0.6"), 1, "0.5", "0.6"))
    steps: list[Fault] = []

    def find_step(
        bench: Bench, texts: Texts, scope: Scope, fault: Fault, *rest: Any, **limits: int
    ) -> Search:
        assert len(steps) < 9, "it begins again and again"
        steps.append(fault)
        return Search(None, 1, 0.0) if texts else Search(first, 1, 0.0, moves=True)

    nothing = Search(None, 1, 0.0)
    monkeypatch.setattr("reprod_align.mending.mend.find_edit", lambda *given, **limits: nothing)
    monkeypatch.setattr("reprod_align.mending.mend.find_step", find_step)
    found = mend(path)
    assert not found.passed and found.edits == () and found.patch == "" and found.texts == {}
    assert len(steps) == 3  # the first mistake; the second among what PyTorch says, then among more


@pytest.mark.parametrize("fault", SETTINGS)
def test_a_setting_is_written_as_paddle_writes_it(fault: str, tmp_path: Path) -> None:
    right = write_pair(tmp_path, text=LAYERS).read_text()
    assert mend(tmp_path / "pair_net.py").edits == ()
    path = write_pair(tmp_path, fault, text=LAYERS)
    found = mend(path)
    assert found.passed and len(found.edits) == 1, found.summary()
    made = found.texts[str(path)]
    assert made == right or "momentum" in fault and "BatchNorm1D(6, momentum=0.8)" in made


def test_what_is_beside_an_edit_stays_byte_for_byte(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "a summand left out")
    text = path.read_text().replace("\n", "\r\n").rstrip()  # and no end of the last line
    path.write_bytes(text.encode())
    found = mend(path)
    assert found.passed
    after = found.texts[str(path)]
    assert after == PAIR.rstrip().replace("\n", "\r\n")


def test_a_faithful_port_needs_no_edit(tmp_path: Path) -> None:
    found = mend(write_pair(tmp_path))
    assert found.passed and found.edits == () and found.patch == ""
    assert "as it is" in found.summary()


def test_code_without_a_file_is_left_and_said(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "a function")
    head, made, rest = path.read_text().partition("def paddle_model")
    body, inputs, end = (made + rest).partition("\n\ndef inputs")
    path.write_text(f"{head}exec({body!r}){inputs}{end}")
    found = mend(path)
    assert not found.passed and found.edits == () and found.left
    assert "no source that can be edited" in found.summary()


def test_a_layer_that_the_port_lacks_is_said_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_pair(tmp_path)
    text = path.read_text().replace("self.out(mixed)", "self.more(self.out(mixed))")
    made = "self.out = nn.Linear(6, 6)"
    path.write_text(text.replace(made, f"{made}\n            self.more = nn.Linear(6, 6)"))
    nothing = Search(None, 1, 0.0)
    for name in ("find_edit", "find_step"):
        monkeypatch.setattr(f"reprod_align.mending.mend.{name}", lambda *given, **limits: nothing)
    with open_bench(path) as bench:
        mended = mend_port(bench.pair, bench.make_port)
    assert mended.lacking == ("more.weight",)
    assert "no layer is written: more.weight" in mended.summary()
