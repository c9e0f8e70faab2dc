"""A file is ported: the folder that comes out proves itself, and what is left is told."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reprod_align.conversion.weight_map import ModelPair
from reprod_align.errors import ReprodError
from reprod_align.pair.file import PairFile, open_file
from reprod_align.porting import attempt, report
from reprod_align.porting.attempt import Obstacle
from reprod_align.porting.calls import names as public
from reprod_align.porting.paconvert import read_draft
from reprod_align.porting.port import convert_weights, find_lines, port
from reprod_align.porting.source import PAIR, Source, name_port, write_pair
from tests.porting.conftest import PortSource, WriteSource
from tests.porting.drafts import NUMBERS, make_bench

import numpy as np
import pytest

SOURCE = """
import torch

class Net(torch.nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.layer, self.factor = torch.nn.Linear(6, 2), factor

    def forward(self, x):
        return self.layer(x) * self.factor
"""
DRAFT = SOURCE.replace("torch", "paddle").replace("paddle.nn.Linear", "paddle.compat.nn.Linear")


@pytest.fixture
def source(write_source: WriteSource) -> Source:
    return write_source(SOURCE)


def draft_by(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("reprod_align.porting.port.find_converter", lambda: [])
    monkeypatch.setattr("reprod_align.porting.port.make_draft", lambda *_: read_draft(text))


def test_the_folder_proves_itself(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft_by(monkeypatch, DRAFT)
    result = port(source, NUMBERS, tmp_path / "out")
    assert result.passed and result.verdict == "faithful" and not result.left
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == sorted(
        ["inputs.npz", "pair.py", "report.md", "weights.pdparams", f"{name_port(source)}.py"]
    )
    with open_file(tmp_path / "out" / "pair.py", PairFile) as file:
        torch, paddle = file.side("torch").values(), file.side("paddle").values()
        np.testing.assert_array_equal(torch["layer.weight"].T, paddle["layer.weight"])
        np.testing.assert_array_equal(file.inputs()[0], NUMBERS[0])  # type: ignore[index]
    sys.modules.pop(name_port(source))
    told = (tmp_path / "out" / report.REPORT).read_text()
    assert "Verdict: **faithful**" in told and "outputs, train mode" in told
    assert json.loads(result.to_json())["at_once"] == "faithful"


def test_a_port_that_agrees_to_float32_only_says_why(
    write_source: WriteSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenth = "paddle.to_tensor(0.1, dtype='float32').astype(x.dtype)"
    draft_by(monkeypatch, DRAFT.replace("self.factor\n", f"{tenth}\n"))
    result = port(write_source(SOURCE.replace("1.0", "0.1")), NUMBERS, tmp_path / "out", "compat")
    assert result.passed and result.verdict == "agrees to float32"
    (reason,) = json.loads(result.to_json())["float32"]
    assert f"  float32   {reason}\n" in result.summary()
    assert f"- Float32: {reason}\n" in result.to_markdown()


def test_inputs_by_name_come_back(source: Source, tmp_path: Path) -> None:
    write_pair(source, {"file": np.ones(2), "x y": np.arange(3)}, tmp_path)
    with open_file(tmp_path / PAIR, PairFile) as file:
        assert {name: array.tolist() for name, array in file.inputs().items()} == {  # type: ignore[union-attr]
            "file": [1, 1], "x y": [0, 1, 2]
        }  # fmt: skip
    with pytest.raises(ReprodError, match="arrays of numbers"):
        write_pair(source, (np.array([None]),), tmp_path)


def test_what_is_left_has_its_line(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft_by(
        monkeypatch, DRAFT.replace("* self.factor", "* self.factor + paddle.nope(x) + torch.x.y")
    )
    result = port(source, NUMBERS, tmp_path / "out", "compat")
    assert not result.passed and result.verdict == "does not run"
    assert "run: line 10: AttributeError: module 'paddle' has no attribute 'nope'" in result.left[0]
    assert result.left[1] == "line 10: torch.x.y is not converted"
    assert (
        f"## Left for a person, by lines of {result.port}"
        in (tmp_path / "out" / report.REPORT).read_text()
    )
    assert f"left for a person, by lines of {result.port}:" in result.summary()


def test_a_remark_names_the_source_and_its_line(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("import torch\n\n\nx = f(1)\ny = f(2)\nx = f(1)\n")
    gathered = "import torch\ny = g(3)\nx = f(1)\ny = f(2)\nz = f(2)\nx = f(1)\nz = f(2)\n"
    labels = [f"line {number}: torch.f" for number in (6, 4, 2)]
    assert list(find_lines(labels, gathered, path)) == [
        "net.py:6: torch.f", "net.py:5: torch.f", "torch.f in `y = g(3)`"
    ]  # fmt: skip
    assert next(find_lines(["line 3: f"], gathered + "x = f(1)", path)) == "f in `x = f(1)`"


@pytest.mark.parametrize(
    ("draft", "stage", "text", "line"),
    [
        ("import paddle\nx = nope", "import", "NameError: name 'nope' is not defined", 2),
        ("import paddle\nNet = 1 +", "import", "SyntaxError: invalid syntax", 2),
        ("def Net():\n    raise ValueError('no')", "build", "ValueError: no", 2),
    ],
)
def test_an_obstacle_has_its_stage_and_line(
    draft: str, stage: str, text: str, line: int, tmp_path: Path
) -> None:
    bench = make_bench(tmp_path, SOURCE, DRAFT)
    folder = tmp_path / "one"
    folder.mkdir()
    write_pair(bench.source, NUMBERS, folder)
    (folder / bench.file).write_text(draft)
    with pytest.raises(Obstacle) as caught:
        attempt.attempt(folder, bench.module)
    found: attempt.Problem = caught.value.problem
    assert found.stage == stage and found.text.startswith(text) and found.line == line


@contextmanager
def opened(tmp_path: Path, factor: str) -> Iterator[tuple[ModelPair, Path]]:
    """Open the pair whose port multiplies by `factor` in place of its own."""
    bench = make_bench(tmp_path, SOURCE, DRAFT)
    folder = tmp_path / "two"
    folder.mkdir()
    write_pair(bench.source, NUMBERS, folder)
    (folder / bench.file).write_text(DRAFT.replace("* self.factor", f"* {factor}"))
    with attempt.open_pair(folder, bench.module) as pair:
        yield pair, folder


def test_weights_that_do_not_convert_are_told(tmp_path: Path) -> None:
    with opened(tmp_path, "2") as (pair, folder):
        assert "the outputs of the models differ" in convert_weights(pair, folder, True)
        assert convert_weights(pair, folder, False).startswith("weights.pdparams: 2 tensors")
    assert not [path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__"]


def test_an_object_by_its_name() -> None:
    assert public.find_object("math.pi") and public.find_object("math.nope") is None
    assert public.find_object("no such thing") is None


def test_a_draft_that_is_no_python_leaves_the_folder_and_its_line(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft_by(monkeypatch, "import paddle\n\nfrom (paddle import nn")
    result = port(source, NUMBERS, tmp_path / "out", "compat")
    assert not result.passed and result.verdict == "does not import"
    assert result.left == ["import: line 3: SyntaxError: invalid syntax `from (paddle import nn`"]
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"inputs.npz", "pair.py", "report.md", f"{name_port(source)}.py"}


ASKING = {
    "__init__.py": "",
    "kinds.py": """
import torch

REGISTRY = {}

def register(name):
    def enter(function):
        REGISTRY[name] = function
        return function
    return enter

def enter(name, kind):
    REGISTRY[name] = kind

def find(name):
    return REGISTRY[name]

def is_other(x):
    return not isinstance(x, torch.Tensor)

def is_tensor(x):
    return "torch" in str(type(x)) or not is_other(x)
""",
    "acts.py": """
import torch
from .kinds import enter, register

@register("twice")
def twice(x):
    return torch.mul(x, 2)

class Shift(torch.nn.Module):
    def forward(self, x):
        return x + 1

enter("shift", Shift)
""",
    "net.py": """
import torch
from torch import nn
from . import acts
from .kinds import REGISTRY, find, is_tensor

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.shift = nn.Linear(6, 2), find("shift")()

    def forward(self, x):
        assert is_tensor(x) and REGISTRY
        return find("twice")(self.shift(self.layer(x)))
""",
}


def test_registries_and_functions_that_only_the_port_calls_come_along(
    port_source: PortSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprod_align.porting.port.find_converter", refuse)
    result, text = port_source(ASKING, NUMBERS)
    assert result.passed, result.left
    assert '@register("twice")' in text and "return not isinstance(x, paddle.Tensor)" in text
    assert "torch." not in text.replace('"torch" in', "")


def refuse() -> list[str]:
    raise ReprodError("PaConvert is not asked")


STOCK = """
import torch
from torch import nn
from torch.autograd import Function


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.neg() * ctx.scale, None


class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gate):
        ctx.save_for_backward(x, gate)
        return x * torch.sigmoid(gate)

    @staticmethod
    def backward(ctx, grad):
        x, gate = ctx.saved_tensors
        s = torch.sigmoid(gate)
        return grad * s, grad * x * s * (1 - s)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 4)
        layer = nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, nn.RMSNorm(4), False)
        self.register_buffer("gate", torch.linspace(0, 1, 4))
        self.act = nn.ReLU(True)

    def forward(self, x):
        x = self.layer(x)
        x = Gate.apply(x, self.gate.expand_as(x)) + Reverse.apply(x, 0.5)
        mask = nn.Transformer.generate_square_subsequent_mask(4)
        x = self.encoder(x[None], mask=mask)
        return x + self.act(x)
"""


def test_custom_functions_stock_transformers_and_changed_inputs_are_ported(
    port_source: PortSource,
) -> None:
    result, text = port_source(STOCK, NUMBERS)
    assert result.passed, result.left
    assert "return grad.neg() * ctx.scale\n" in text and "ctx.saved_tensor()" in text
    assert "if ctx.needs_input_grad[1] else None" in text and "class InplaceReLU" in text


NEIGHBOURS = {
    "__init__.py": "",
    "gate.py": """
import torch

class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad * 3, grad)
""",
    "net.py": """
import torch
from torch import nn
from .gate import Scaled

class Net(nn.Module):
    def __init__(self, act, norm, mask):
        super().__init__()
        self.layer, self.act, self.norm = nn.Linear(6, 4), act, norm(4, eps=1e-3)
        self.register_buffer("mask", mask)
        self.free = nn.BatchNorm1d(4, track_running_stats=False)

    def forward(self, x):
        return self.free(self.norm(Scaled.apply(self.act(self.layer(x)))) @ self.mask)
""",
}


INNER = """
import torch
from torch import nn


class Inner(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.layer = nn.Linear(6, 6)
        self.act = nn.GELU() if "gelu" in kinds else nn.ReLU()

    def forward(self, x):
        return self.act(self.layer(x))
"""
WRAPPED = {
    "net.py": """
from torch import nn
from .words import read


class Net(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner, self.last = inner, nn.Linear(6, 3)
        nn.init.zeros_(self.last.weight)

    def forward(self, x):
        return self.last(self.inner(x))
""",
    "words.py": """
def read(text):
    return text.split("_")
""",
}


@pytest.mark.parametrize(
    "module",
    ["__import__('inner_of_another')", "__import__('inner_of_another', fromlist=['Inner'])"],
)
def test_a_call_that_works_on_its_model_is_ported_with_it(
    tmp_path: Path, port_source: PortSource, module: str
) -> None:
    """A model of another package, PyTorch by `__import__`, a function of the file, and a lambda."""
    (tmp_path / "inner_of_another.py").write_text(INNER)
    call = (
        "(lambda m: ([__import__('torch').nn.init.constant_(p, 0.5) for p in m.parameters() if not p.any()], "
        f"[p.data.mul_(2.0) for p in m.parameters()], m)[2])(Net({module}."
        "Inner(read('gelu_x'))))"
    )
    result, text = port_source(WRAPPED, NUMBERS, call)
    assert result.verdict == "faithful", result.left
    assert "class Inner(nn.Layer)" in text and "def make_model():" in text
    assert "__import__" not in text and "import read" in text


def test_names_of_the_file_are_not_taken_by_helpers(port_source: PortSource) -> None:
    """`embed` is a function of the file, `bce` a variable, and both are what a helper is called."""
    result, text = port_source(TAKEN, NUMBERS)
    assert result.verdict == "faithful", result.left
    assert "def own_embed(" in text and "own_embed(i, self.table.weight" in text


TAKEN = """
import torch
from torch import nn
import torch.nn.functional as F


def embed(x):
    return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(6, 6), nn.Embedding(7, 6)

    def forward(self, x):
        y = torch.sigmoid(self.layer(embed(x)))
        bce = F.binary_cross_entropy(y, torch.full_like(y, 0.3), reduction="mean")
        i = torch.arange(len(x))
        q, k = (one * 2 for one in self.layer(y).chunk(2, dim=1))
        return bce * y + F.embedding(i, self.table.weight, padding_idx=0), q * k
"""


def test_a_call_that_names_pytorch_is_ported_and_a_neighbour_s_way_back_comes_along(
    tmp_path: Path, port_source: PortSource
) -> None:
    call = "Net(nn.LeakyReLU(0.2), norm=nn.LayerNorm, mask=torch.ones(4, 4).triu())"
    result, text = port_source(NEIGHBOURS, NUMBERS, call)
    assert result.passed, result.left
    assert "def backward(ctx, grad):" in text and "self.free = OwnBatchNorm1D(4" in text
    assert "def make_model():" in text and "nn.LeakyReLU(0.2)" in text
    assert ":make_model()'" in (tmp_path / "out" / "pair.py").read_text()


def test_weights_with_which_a_kernel_s_rounding_shows_are_written(tmp_path: Path) -> None:
    with opened(tmp_path, "self.factor * (1 + 3e-8)") as (pair, folder):
        said = convert_weights(pair, folder, True)
    assert "agree to float32 only (3.0e-08, relative)" in said, said
    assert (folder / "weights.pdparams").is_file()
