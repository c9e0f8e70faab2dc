"""What the commands and `align` say of things that cannot be meant: one line, the right exit code."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align import ReprodError, align
from reprod_align.commands import main
from reprod_align.commands import pair as pair_command
from reprod_align.pair.file import explain_error
from reprod_align.report import Check, Report
from reprod_align.traces import RecordedTrace, TraceTensor, _digest, save_trace
from reprod_align.weights import read_tensors
from tests.conftest import ENVIRONMENT, REPOSITORY

import numpy as np
import paddle
import pytest
import torch

PAIR = """
import numpy as np

def torch_model():
    import torch
    return torch.nn.Linear(5, 3)

def paddle_model():
    import paddle
    return paddle.nn.Linear(5, 3)

def inputs():
    return (np.ones((2, 5), "float32"),)
"""


def file_with(folder: Path, text: str) -> str:
    path = folder / "pair.py"
    path.write_text(PAIR + text)
    return str(path)


def only_line(capsys: pytest.CaptureFixture[str]) -> str:
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1, said
    return said.err


# ------------------------------------------------------------------ output that can't be written


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    values = np.arange(12.0).reshape(3, 4)
    tensor = TraceTensor("l", 0, 0, "", "output", "float64", (3, 4), True, False, False, values)
    save_trace(tmp_path / "good.trace", RecordedTrace("PyTorch", "whole", (tensor,)))
    return tmp_path / "good.trace"


def ended(words: list[str], stdout: Any, **more: Any) -> tuple[int, str]:
    command = [sys.executable, "-m", "reprod_align", *words]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=ENVIRONMENT, stdout=stdout, stderr=subprocess.PIPE, **more
    )
    return done.returncode, done.stderr.decode()


def test_a_reader_that_has_seen_enough(trace: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    assert ended(["diff", str(trace), str(trace)], writer) == (141, "")
    os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk(trace: Path) -> None:
    with open("/dev/full", "w") as full:
        code, said = ended(["diff", str(trace), str(trace)], full)
    assert code == 2 and said == "reprod-align: output: No space left on device\n"


def test_a_name_that_the_output_cannot_show(trace: Path, tmp_path: Path) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    tensor = TraceTensor("é", 0, 0, "", "output", "float64", (2,), True, False, False, np.ones(2))
    save_trace(tmp_path / "named.trace", RecordedTrace("PyTorch", "whole", (tensor,)))
    shown, sys.stdout = sys.stdout, stream
    try:
        assert main(["diff", str(tmp_path / "named.trace"), str(tmp_path / "named.trace")]) == 0
    finally:
        sys.stdout = shown
    stream.seek(0)
    assert r"\xe9" in stream.read()


def test_an_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["pair", file_with(tmp_path, "raise KeyboardInterrupt")]) == 130
    assert only_line(capsys) == "reprod-align: interrupted\n"


def test_without_stderr(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["pair", file_with(tmp_path, "")]) == 0


def test_a_report_that_cannot_be_written_is_printed_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    done, folder = Report(checks=[Check("forward", "outputs", 0.0, True)]), tmp_path / "new"
    folder.mkdir()
    monkeypatch.setattr(
        pair_command, "judge_pair", lambda options: folder.rmdir() or folder.touch() or done
    )
    assert main(["pair", "any.py", "--report", str(folder / "page.html")]) == 2
    said = capsys.readouterr()
    assert said.out.startswith("verdict: faithful") and said.err.count("\n") == 1


def test_a_path_that_is_too_long(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(trace), "a" * 5000]) == 2
    assert "File name too long" in only_line(capsys)


# ------------------------------------------------------------------ a file of the user's


@pytest.mark.parametrize("command", ["pair", "selftest"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("class Own(BaseException): pass\nraise Own('word')", "Own: word"),
        ("def inputs(): raise GeneratorExit", "GeneratorExit: no message"),
        ("def broken(:", "SyntaxError: invalid syntax"),
        ("import no_such_module_here", "No module named 'no_such_module_here'"),
        ("def inputs(wanted): pass", "inputs must be a function of no arguments"),
        ("del torch_model", "defines no function torch_model()"),
        ("def inputs(): yield 1", "inputs must be a dict of arrays"),
    ],
)
def test_a_bad_file(
    command: str, text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, file_with(tmp_path, text)]) == 2
    assert said in only_line(capsys)


def test_a_file_that_goes_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file_with(tmp_path, "import os, sys\nos.chdir('/')\nsys.path.clear()\n1 / 0")
    before = list(sys.path)
    assert main(["pair", "pair.py"]) == 2
    assert "pair.py, line 17: ZeroDivisionError" in only_line(capsys)
    assert Path.cwd() == tmp_path and sys.path == before


def test_an_error_that_is_its_own_cause(tmp_path: Path) -> None:
    error = ValueError("round and round")
    error.__cause__ = KeyError()
    error.__cause__.__cause__ = error
    assert "round and round" in str(explain_error(error, tmp_path / "pair.py"))


# ------------------------------------------------------------------ damaged traces


def rewritten(path: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Write a copy of the trace with its own description changed, and a checksum that fits it."""
    raw, arrays = path.read_bytes(), read_tensors(path)[0]
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    metadata = header["__metadata__"]
    content = json.loads(metadata["reprod_align.trace"])
    change(content)
    metadata["reprod_align.trace"] = json.dumps(content)
    metadata["reprod_align.trace.sha256"] = _digest(metadata["reprod_align.trace"], arrays)
    text = json.dumps(header).encode()
    other = path.with_name("changed.trace")
    other.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    return str(other)


def repeat(content: dict[str, Any]) -> None:
    content["tensors"] *= 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (repeat, "lists the same output of l more than once"),
        (lambda content: content.update(version=True), "format version 3 expected, got True"),
        (lambda content: content.update(version=float("nan")), "version 3 expected, got nan"),
    ],
)
def test_a_damaged_trace(
    change: Callable[[dict[str, Any]], None],
    said: str,
    trace: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["diff", str(trace), rewritten(trace, change)]) == 2
    assert said in only_line(capsys)


@pytest.mark.parametrize("damage", ["fifo", "folder", "/dev/null", "short", "long", "not utf-8"])
def test_no_trace_at_all(damage: str, trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, path = trace.read_bytes(), trace.with_name("other")
    if damage == "fifo":
        os.mkfifo(path)
    elif damage == "folder":
        path.mkdir()
    elif damage == "/dev/null":
        path = Path(damage)
    else:
        bad = {"short": raw[:-5], "long": (1 << 62).to_bytes(8, "little") + raw[8:]}
        path.write_bytes(bad.get(damage, raw[:8] + b"\xff" + raw[9:]))
    assert main(["diff", str(trace), str(path)]) == 2
    only_line(capsys)


@pytest.mark.parametrize("factor", [1e300, 1e-170])
def test_squares_that_are_no_numbers(
    factor: float, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = np.arange(1.0, 5.0) * factor
    one = TraceTensor("l", 0, 0, "", "output", "float64", (4,), True, False, False, values)
    paths = []
    for name, scale in (("a", 1.0), ("b", 1.0), ("c", 1.5)):
        paths.append(str(trace.with_name(name)))
        tensor = replace(one, values=values * scale)
        save_trace(paths[-1], RecordedTrace("PyTorch", "whole", (tensor,)))
    assert main(["diff", paths[0], paths[1]]) == 0
    assert main(["diff", paths[0], paths[2]]) == 1
    said = capsys.readouterr()
    assert "5.0e-01" in said.out and said.err == ""


# ------------------------------------------------------------------ what align is given

X = (np.random.default_rng(0).normal(size=(4, 5)),)


def loss(output: Any) -> Any:
    return output.square().mean()


def torch_sgd(model: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), 0.1)


def paddle_sgd(model: Any) -> paddle.optimizer.Optimizer:
    return paddle.optimizer.SGD(0.1, parameters=model.parameters())


TRAINED = {"torch_loss": loss, "paddle_loss": loss,
           "torch_optimizer": torch_sgd, "paddle_optimizer": paddle_sgd}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"torch_optimizer": lambda model: None}, "torch_optimizer must be .*, not a NoneType"),
        ({"paddle_optimizer": lambda model: None}, "paddle_optimizer must be .*, not a NoneType"),
        ({"torch_optimizer": lambda model: paddle_sgd(paddle.nn.Linear(5, 3))},
         "returns a torch.optim.Optimizer, not a paddle.optimizer.sgd.SGD"),
        ({"paddle_optimizer": lambda model: torch_sgd(torch.nn.Linear(5, 3))},
         "returns a paddle.optimizer.Optimizer, not a torch.optim.sgd.SGD"),
    ],
)  # fmt: skip
def test_what_is_no_optimizer(given: Mapping[str, Any], said: str) -> None:
    models = torch.nn.Linear(5, 3), paddle.nn.Linear(5, 3)
    with pytest.raises(ReprodError, match=said):
        align(*models, X, **{**TRAINED, **given})


def test_attributes_that_hold_themselves() -> None:
    models = torch.nn.Linear(5, 3), paddle.nn.Linear(5, 3)
    outer = torch.nn.Sequential(models[0]), paddle.nn.Sequential(models[1])
    for model in outer:
        model.ring = []
        model.ring.append(model.ring)
        model.deep = []
        for _ in range(3000):
            model.deep = [model.deep]
    assert align(*outer, X).passed


class TorchGives(torch.nn.Module):
    def __init__(self, given: Any) -> None:
        super().__init__()
        self.layer, self.given = torch.nn.Linear(5, 3), given

    def forward(self, x: torch.Tensor) -> Any:
        return self.given(self.layer(x))


class PaddleGives(paddle.nn.Layer):
    def __init__(self, given: Any) -> None:
        super().__init__()
        self.layer, self.given = paddle.nn.Linear(5, 3), given

    def forward(self, x: paddle.Tensor) -> Any:
        return self.given(self.layer(x))


def ours() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(5, 3))


def theirs() -> paddle.nn.Layer:
    return paddle.nn.Sequential(paddle.nn.Linear(5, 3))


def on_meta() -> torch.nn.Module:
    with torch.device("meta"):
        return ours()


def in_itself() -> paddle.nn.Layer:
    model = theirs()
    model[0].parent = model
    return model


@pytest.mark.parametrize(
    ("torch_model", "paddle_model", "said"),
    [
        (lambda: torch.jit.script(ours()), theirs, r"is compiled \(torch.jit\): give the plain"),
        (lambda: torch.nn.Sequential(torch.jit.script(torch.nn.Linear(5, 3))), theirs,
         r"compiled \(torch.jit\) at 0"),
        (on_meta, theirs, r"has a weight without values at 0"),
        (lambda: torch.nn.Sequential(torch.nn.LazyLinear(3)), theirs, "of no shape yet at 0"),
        (theirs, ours, "torch_model is of type paddle.*, not a torch.nn.Module"),
        (ours, ours, "paddle_model is of type torch.*, not a paddle.nn.Layer"),
        (lambda: torch.nn.Embedding(7, 4), lambda: paddle.nn.Embedding(7, 4, sparse=True),
         "has a sparse embedding: give sparse=False"),
        (ours, in_itself, "paddle_model holds itself among its own sublayers"),
        (lambda: TorchGives(str), lambda: PaddleGives(str), "returns no tensor"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore")
def test_models_that_cannot_be_compared(torch_model: Any, paddle_model: Any, said: str) -> None:
    with pytest.raises(ReprodError, match=said):
        align(torch_model(), paddle_model(), X)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ((torch.zeros(4, 5),), "expected a numpy array, got a torch.Tensor: give its .numpy"),
        (
            {"input": paddle.zeros([4, 5])},
            "expected a numpy array, got a paddle.Tensor: give its .numpy",
        ),
        ((np.array([None]),), "expected numbers, got an array of object"),
        ({1: X[0]}, "expected names of arguments as keys, got 1"),
        (X[0], "must be a dict of arrays"),
        ({"no_such": X[0]}, "unexpected keyword argument 'no_such'"),
    ],
)
def test_inputs_that_cannot_be_given(inputs: Any, said: str) -> None:
    with pytest.raises(ReprodError, match=said):
        align(ours(), theirs(), inputs)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"steps": "3"}, "steps: expected a whole number above 0, got '3'"),
        ({"steps": 2.5}, "steps: expected a whole number above 0, got "),
        ({"steps": None}, "steps: expected a whole number above 0, got "),
        ({"name_map": [("0", "0")]}, "name_map: expected a dict from PyTorch's names to Paddle's, got "),
        ({"name_map": {0: 0}}, "name_map: expected a dict from PyTorch's names to Paddle's, got "),
        ({"copy_weights": "no"}, "copy_weights: expected True or False, got "),
        ({"torch_loss": lambda output: output.sum(1)}, r"expected a tensor of one element, got shape \(4,\)"),
        ({"torch_loss": lambda output: 1.5}, "expected a tensor of one element, got a float"),
        ({"torch_loss": lambda output: None}, "expected a tensor of one element, got None: is a "),
        ({"torch_loss": lambda output: 1 / 0}, "PyTorch loss raised: ZeroDivisionError"),
        ({"torch_scheduler": lambda optimizer: 3}, r"a scheduler with step\(\), not a int"),
        ({"torch_optimizer": None, "paddle_optimizer": None, "torch_scheduler": len},
         "a scheduler needs an optimizer"),
    ],
)  # fmt: skip
def test_arguments_that_cannot_be_meant(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ReprodError, match=said):
        align(ours(), theirs(), X, **{**TRAINED, **given})


@pytest.mark.parametrize(
    ("given", "stage"),
    [
        ({"paddle_loss": lambda output: 1.5}, "loss"),
        ({"paddle_optimizer": lambda model: 1 / 0}, "optimizer"),
        ({"paddle_scheduler": lambda optimizer: 1 / 0}, "schedule"),
    ],
)
def test_a_port_that_raises_is_found_where_it_does(given: Mapping[str, Any], stage: str) -> None:
    report = align(ours(), theirs(), X, **{**TRAINED, **given})
    assert report.findings[0].stage == stage and "raises" in report.findings[0].message


def test_an_optimizer_that_is_not_made_anew() -> None:
    model = theirs()
    kept = paddle_sgd(model)
    with pytest.raises(ReprodError, match="returned the same optimizer twice"):
        align(ours(), model, X, **{**TRAINED, "paddle_optimizer": lambda model: kept})


def test_a_scheduler_that_is_not_made_anew() -> None:
    kept = paddle.optimizer.lr.StepDecay(0.1, 2)
    maker = partial(paddle.optimizer.SGD, kept)
    given = {**TRAINED, "paddle_optimizer": lambda model: maker(parameters=model.parameters())}
    with pytest.raises(ReprodError, match="returned the same scheduler twice"):
        align(ours(), theirs(), X, **given)


def test_a_scheduler_that_is_not_attached_is_said_once() -> None:
    report = align(ours(), theirs(), X, **TRAINED,
                   torch_scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 2),
                   paddle_scheduler=lambda optimizer: paddle.optimizer.lr.StepDecay(0.1, 2))  # fmt: skip
    assert report.passed and sum("not attached" in remark for remark in report.remarks) == 1


def test_clipping_by_norm_of_which_paddle_has_no_float64() -> None:
    clip = paddle.nn.ClipGradByNorm(0.01)
    given = {**TRAINED, "paddle_optimizer": lambda model: paddle.optimizer.SGD(
        0.1, parameters=model.parameters(), grad_clip=clip)}  # fmt: skip
    report = align(ours(), theirs(), X, **given)
    assert "judged in float32" in report.remarks[0]
    assert report.findings[0].message.startswith(
        "clip: Paddle's optimizer clips gradients by the norm"
    )


class TorchPoisson(TorchGives):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        return y * torch.poisson(torch.ones(3)).to(y.dtype) if self.training else y


class PaddlePoisson(PaddleGives):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.layer(x)
        return y * paddle.poisson(paddle.ones([3])).astype(y.dtype) if self.training else y


def test_a_draw_that_cannot_be_shared_ends_the_comparison_there() -> None:
    report = align(TorchPoisson(None), PaddlePoisson(None), X, **TRAINED)
    assert report.passed and any("the rest was not compared" in one for one in report.remarks)
    wrong = align(TorchPoisson(None), PaddleGives(lambda output: output * 2), X)
    assert wrong.findings[0].stage == "forward"
    alone = align(TorchGives(lambda output: output), PaddlePoisson(None), X)
    assert "raises UnsharedDrawError" in alone.findings[0].message


class NoWords(Exception):
    def __str__(self) -> str:
        raise ValueError("none")


def test_an_error_without_words() -> None:
    def given(output: Any) -> Any:
        raise NoWords

    with pytest.raises(ReprodError, match="NoWords: no message"):
        align(TorchGives(given), PaddleGives(given), X)


def test_weights_that_paddle_computes_before_each_call() -> None:
    model = theirs()
    paddle.nn.utils.weight_norm(model[0], dim=None)
    assert align(ours(), model, X).checks  # its computed weight takes no gradient


class TorchFused(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(5, 15)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, -1)
        return q * k + v


class PaddleSplit(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (paddle.nn.Linear(5, 5) for _ in "qkv")

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.q(x) * self.k(x) + self.v(x)


def test_sizes_that_follow_from_fusing_are_no_remark() -> None:
    report = align(TorchFused(), PaddleSplit(), X)
    assert report.passed and not any("out_features" in remark for remark in report.remarks)


class TorchPast(TorchGives):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.given(torch.tanh(self.layer.forward(x)))


class PaddlePast(PaddleGives):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.given(paddle.tanh(self.layer.forward(x)) * 1.01)


def test_a_call_past_the_hooks_adds_no_finding_that_follows_from_another() -> None:
    report = align(TorchPast(torch.nn.Linear(3, 3)), PaddlePast(paddle.nn.Linear(3, 3)), X)
    assert [finding.torch_name for finding in report.findings] == [""], report
