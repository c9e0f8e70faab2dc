"""The Paddle model as the reference: PyTorch's is its port, and every message says so."""

import ast
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from reprod_align import align
from reprod_align.commands import main
from reprod_align.commands.pair import judge_file
from reprod_align.errors import ReprodError
from reprod_align.page.chinese import translate
from reprod_align.pair.file import PairFile, open_file
from reprod_align.report import Report
from reprod_align.report.pages import make_page, render_sarif

import pytest

ROOT = Path(__file__).parents[2]
_PAIR = '''
"""A Paddle model and its port to PyTorch."""
import numpy as np

reference = "paddle"


def paddle_model():
    import paddle
    from paddle import nn

    class Reader(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.norm = nn.LayerNorm(8, epsilon=1e-12)
            self.conv = nn.Conv1D(8, 8, 3, padding=1)
            self.bn = nn.BatchNorm1D(8)
            self.dense = nn.Linear(8, 16)
            self.dropout = nn.Dropout(0.1)
            self.out = nn.Linear(16, 3)

        def forward(self, ids, mask):
            words = self.norm(self.embed(ids))  # (B, L, 8)
            words = self.bn(self.conv(words.transpose([0, 2, 1]))).transpose([0, 2, 1])
            mean = (words * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)  # (B, 8)
            hidden = paddle.tanh(self.dense(mean))
            return self.out(self.dropout(hidden))  # (B, 3)

    paddle.seed(1)
    return Reader()


def torch_model():
    import torch
    from torch import nn

    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.norm = nn.LayerNorm(8, eps=1e-12)
            self.conv = nn.Conv1d(8, 8, 3, padding=1)
            self.bn = nn.BatchNorm1d(8)
            self.dense = nn.Linear(8, 16)
            self.dropout = nn.Dropout(0.1)
            self.out = nn.Linear(16, 3)

        def forward(self, ids, mask):
            words = self.norm(self.embed(ids))  # (B, L, 8)
            words = self.bn(self.conv(words.permute(0, 2, 1))).permute(0, 2, 1)
            mean = (words * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)  # (B, 8)
            hidden = torch.tanh(self.dense(mean))
            return self.out(self.dropout(hidden))  # (B, 3)

    torch.manual_seed(0)
    return Reader()


def inputs():
    ids = np.random.default_rng(0).integers(0, 20, (4, 6))
    mask = np.arange(6) < np.array([[6], [4], [5], [2]])
    return {"ids": ids * mask, "mask": mask.astype("float64")}


def torch_loss(output):
    import torch

    return torch.nn.functional.cross_entropy(output, torch.tensor([0, 2, 1, 1]))


def paddle_loss(output):
    import paddle

    return paddle.nn.functional.cross_entropy(output, paddle.to_tensor([0, 2, 1, 1]))


def torch_optimizer(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def paddle_optimizer(model):
    import paddle

    return paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), weight_decay=0.01)
'''

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return what writes the pair file, with a part of it exchanged."""

    def write_pair(before: str = "", after: str = "") -> Path:
        assert _PAIR.count(before) == 1 or not before
        path = tmp_path / "pair.py"
        path.write_text(_PAIR.replace(before, after) if before else _PAIR, encoding="utf-8")
        return path

    return write_pair


def find_line(path: Path, text: str) -> str:
    """Return "pair.py:12" of the one line that holds the text."""
    (number,) = (n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)
    return f"{path.name}:{number}"


def test_a_faithful_port_to_pytorch(write: Write) -> None:
    """Weights, both modes, statistics, gradients and steps agree."""
    report = judge_file(write())
    assert report.verdict == "faithful" and report.passed and report.reference == "paddle"
    assert {check.stage for check in report.checks} >= {"forward", "backward", "loss", "optimizer"}


PLANTED = {
    "setting": (
        "self.norm = nn.LayerNorm(8, eps=1e-12)", "self.norm = nn.LayerNorm(8, eps=1e-5)",
        "norm", "nn.LayerNorm(8, epsilon=1e-12)", "eps",
    ),
    "function": (
        "hidden = torch.tanh(self.dense(mean))", "hidden = torch.relu(self.dense(mean))",
        "", "hidden = paddle.tanh(self.dense(mean))", "torch.tanh",
    ),
    "extra call": (
        "words = self.bn(self.conv(words.permute(0, 2, 1))).permute(0, 2, 1)",
        "words = self.bn(self.conv(words.permute(0, 2, 1))).permute(0, 2, 1).flip(1)",
        "", "hidden = paddle.tanh(self.dense(mean))", "PyTorch calls",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_on_pytorchs_side_is_named_there(write: Write, name: str) -> None:
    """The line of the port is PyTorch's, the line beside it is Paddle's; so is the page of it."""
    before, after, module, theirs, words = PLANTED[name]
    path = write(before, after)
    report = judge_file(path)
    assert report.verdict == "diverges"
    first = report.findings[0]
    assert first.torch_name == module
    assert Path(first.torch_line or "").name == find_line(path, after)
    assert Path(first.paddle_line or "").name == find_line(path, theirs)
    assert words in (text := report.summary()), text
    shown = str(report)
    assert f"--> {first.torch_line}" in shown and f"= Paddle: {first.paddle_line}" in shown
    assert json.loads(report.to_json())["findings"][0]["torch_line"] == first.torch_line


def test_the_file_or_the_caller_says_whose_model_is_right(write: Write) -> None:
    """Turned round, the same fault stands in Paddle's line."""
    path = write(*PLANTED["setting"][:2])
    turned = judge_file(path, reference="torch").findings[0]
    assert turned.reference == "torch" and "Paddle" in turned.message
    assert "set epsilon=1e-05 in Paddle" in turned.message
    assert "set eps=1e-12 in PyTorch" in judge_file(path).findings[0].message


def test_what_the_port_lacks_is_said_of_pytorch(write: Write) -> None:
    """A bias that Paddle's layer has."""
    layer = "            self.out = nn.Linear(16, 3)\n"
    path = write()
    before, after = path.read_text().rsplit(layer, 1)
    path.write_text(before + layer.replace("16, 3", "16, 3, bias=False") + after)
    first = judge_file(path).findings[0]
    assert (first.code, first.torch_name) == ("linear-bias", "out")
    assert "set bias=True in PyTorch" in first.message
    assert (first.torch_line or "").endswith(find_line(path, "nn.Linear(16, 3, bias=False)"))


def test_an_optimizer_of_another_kind(write: Write) -> None:
    """The decay that Adam adds to the gradient."""
    report = judge_file(write("torch.optim.AdamW(", "torch.optim.Adam("))
    found = next(one for one in report.findings if one.stage == "optimizer")
    assert "(AdamW) in Paddle, the decay is added to the gradient (L2) in PyTorch" in found.message


def test_the_page_and_the_code_scan_show_the_ports_line(write: Write, tmp_path: Path) -> None:
    """PyTorch's line is the place of the result, Paddle's stands beside it; so it is in Chinese."""
    path = write(*PLANTED["setting"][:2])
    report = judge_file(path)
    sarif = json.loads(render_sarif(report, path))["runs"][0]["results"][0]
    where = sarif["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert f"pair.py:{where}" == find_line(path, "eps=1e-5")
    assert sarif["relatedLocations"][0]["message"]["text"] == "Paddle"
    lines = make_page(report, "pair").diagnostics[0].lines
    assert [line.side for line in lines] == ["Paddle", "PyTorch"]
    words = "the function is tanh in PyTorch and sigmoid in Paddle"
    assert translate(words) == "所用的函数：PyTorch 为 tanh，Paddle 为 sigmoid"


def test_the_command_takes_the_reference(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    """--reference goes before what the file says; each side may be in a process of its own."""
    path = write('reference = "paddle"', "")
    assert main(["pair", str(path), "--reference", "paddle", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reference"] == "paddle"
    pythons = ["--torch-python", sys.executable, "--paddle-python", sys.executable]
    path = write(*PLANTED["setting"][:2])
    assert main(["pair", str(path), *pythons]) == 1
    assert "set eps=1e-12 in PyTorch" in capsys.readouterr().out
    assert main(["pair", str(path), "--reference", "paddle", "--sections"]) == 2
    assert "--reference goes with neither --sections nor --parallel" in capsys.readouterr().err


def test_convert_takes_the_same_file(write: Write, tmp_path: Path) -> None:
    """From .pdparams to a file that loads in PyTorch, proven equal."""
    import paddle
    import torch

    path, source = write(), tmp_path / "model.pdparams"
    with open_file(path, PairFile, any_reference=True) as file:
        paddle.save(file.find_maker("paddle")().state_dict(), str(source))
        model = file.find_maker("torch")()
    for name in ("model.pt", "model.safetensors"):
        target = tmp_path / name
        assert main(["convert", str(source), str(target), "--pair", str(path)]) == 0
    model.load_state_dict(torch.load(tmp_path / "model.pt"))
    held = paddle.load(str(source))
    assert (model.dense.weight.detach().numpy().T == held["dense.weight"].numpy()).all()


FACTS = {
    "alignment/audit.py", "alignment/leftovers.py", "alignment/state_stage.py",
    "alignment/training/effects.py", "alignment/unjudged.py", "causes/losses.py",
}  # fmt: skip
"""modules with a sentence on a framework, whichever side it is"""


def test_sentences_take_the_frameworks_names_from_the_roles() -> None:
    """A literal "PyTorch" in a message would be wrong where Paddle is the reference."""
    written = set()
    for package in ("alignment", "causes", "match"):
        for path in sorted((ROOT / "reprod_align" / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            named = (
                node for node in ast.walk(tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str)
                and id(node) not in texts and re.search(r"\b(PyTorch|Paddle)\b", node.value)
            )  # fmt: skip
            if any(named):
                written.add(path.relative_to(ROOT / "reprod_align").as_posix())
    assert written == FACTS


def test_other_commands_refuse_such_a_file(write: Write) -> None:
    """One line that says which commands take it."""
    path = write()
    words = "says reference = 'paddle': that is for pair and convert alone"
    with pytest.raises(ReprodError, match=words), open_file(path, PairFile):
        pass
    path = write('reference = "paddle"', 'reference = "jax"')
    with pytest.raises(ReprodError, match="reference: expected 'torch' or 'paddle', got 'jax'"):
        judge_file(path)


def test_align_takes_the_reference() -> None:
    """From Python; `name_map` goes from PyTorch's names to Paddle's all the same."""
    report = _align_renamed({"a": "b"})
    assert report.verdict == "faithful" and report.pairs["a"] == "b"
    with pytest.raises(ReprodError, match="several of PyTorch's names have one of Paddle's"):
        _align_renamed({"a": "b", "c": "b"})


def _align_renamed(names: dict[str, str]) -> Report:
    import numpy as np
    import paddle
    import torch

    class Torch(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a(x)

    class Paddle(paddle.nn.Layer):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.b = paddle.nn.Linear(3, 3)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.b(x)

    x = np.random.default_rng(0).normal(size=(2, 3))
    return align(Torch(), Paddle(), (x,), name_map=names, reference="paddle")
