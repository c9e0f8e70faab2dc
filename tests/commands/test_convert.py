"""`reprod-align convert`: its options, output and exit codes."""

import json
from pathlib import Path

from reprod_align.commands import convert
from reprod_align.errors import ReprodError
from tests.commands.asked import run

import pytest
import torch

FILE = """
import numpy as np

def torch_model():
    import torch
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())

def paddle_model():
    from paddle import nn
    return nn.Sequential(nn.Linear(3, 3), nn.Tanh())

inputs = (np.random.default_rng(0).standard_normal((4, 3)),)
"""
ROW = "0.weight  0.weight  float32  (3, 3)         (3, 3)        transposed"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_convert.py").write_text(FILE)
    torch.manual_seed(0)
    state = torch.nn.Sequential(torch.nn.Linear(3, 3)).state_dict()
    torch.save({"model": state, "ema": {name: 2 * held for name, held in state.items()}}, "a.bin")
    return tmp_path


def test_convert_verify_and_the_way_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(convert, "a.bin", "b.pdparams", "--pair", "mine_convert.py", "--save-map", "m") == 0
    shown = capsys.readouterr().out
    assert ROW in shown and "remark: taken from 'model'" in shown
    assert "the outputs of both models agree to " in shown
    assert "wrote b.pdparams: 2 tensors, 48 bytes" in shown
    assert run(convert, "a.bin", "b.pdparams", "--verify", "--map", "m", "--select", "model") == 0
    assert run(convert, "a.bin", "b.pdparams", "--verify", "--map", "m", "--select", "ema") == 1
    assert "0.weight: the weight is 0.5 times PyTorch's" in capsys.readouterr().out
    named = ("--torch", "mine_convert:torch_model", "--paddle", "mine_convert:paddle_model",
             "--inputs", "mine_convert:inputs")  # fmt: skip
    assert run(convert, "b.pdparams", "c.safetensors.index.json", *named, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (
        said["passed"] and said["agreement"]["passed"] and said["rows"][0]["words"] == "transposed"
    )
    assert Path("c-00001-of-00001.safetensors").is_file()


def test_a_dry_run_writes_nothing_and_faults_give_exit_code_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(convert, "a.bin", "b.pdparams", "--pair", "mine_convert.py", "--dry-run") == 0
    torch.save({"0.weight": torch.ones(3, 3), "more": torch.ones(1)}, "a.bin")
    assert run(convert, "a.bin", "b.pdparams", "--pair", "mine_convert.py") == 1
    shown = capsys.readouterr().out
    assert "2 faults:" in shown and "missing: 0.bias" in shown and "left over: more (1,)" in shown
    assert not Path("b.pdparams").exists()


def test_a_map_alone_needs_no_check(capsys: pytest.CaptureFixture[str]) -> None:
    run(convert, "a.bin", "b.pdparams", "--pair", "mine_convert.py", "--dry-run", "--save-map", "m")
    with pytest.raises(ReprodError, match="--map FILE with --no-check"):
        run(convert, "a.bin", "b.pdparams", "--map", "m")
    assert (
        run(convert, "a.bin", "b.pdparams", "--map", "m", "--no-check", "--shard-size", "1k") == 0
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--torch", "a:b"), "go together: give all three"),
        (("--torch", "a:b", "--pair", "mine_convert.py"), "not both"),
        (("--pair", "none.py"), "none.py is missing"),
        (("--torch-python", "python"), "need a file: give --pair FILE.py"),
        (("--pair", "mine_convert.py", "--paddle-python", "/no/python"), "cannot start /no/python"),
    ],
)
def test_options_that_do_not_go_together(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ReprodError, match=message):
        run(convert, "a.bin", "b.pdparams", *words)


@pytest.mark.parametrize("other", ["a.bin", "b.pdparams", "mine_convert.py", "."])
def test_the_map_replaces_no_other_file(folder: Path, other: str) -> None:
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    with pytest.raises(ReprodError, match="would replace|is a folder"):
        run(convert, "a.bin", "b.pdparams", "--pair", "mine_convert.py", "--save-map", other)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_a_name_forges_no_line_of_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({"a": torch.ones(1), "b\nwrote x: all is well": torch.ones(1)}, "a.bin")
    Path("m").write_text('{"format": 1, "rules": [{"torch": "a", "paddle": "c\\nwrote y"}]}')
    assert run(convert, "a.bin", "b.pdparams", "--map", "m", "--no-check") == 1
    assert not any(line.startswith("wrote") for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize("size", ["5x", "0", "-1", "G", "0.1", "9" * 400])
def test_a_size_that_is_none(size: str) -> None:
    with pytest.raises(SystemExit):
        run(convert, "a.bin", "b.pdparams", "--shard-size", size)
