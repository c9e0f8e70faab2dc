"""PaConvert's draft: what it reads, how it fails in one line, and the plain Paddle that is made of it."""

import sys
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.explain.code import Code
from reprod_align.porting import paconvert
from reprod_align.porting.calls.rewriting import write_names_in_full
from reprod_align.porting.loop import mend
from reprod_align.porting.paconvert import (
    VERSION,
    find_converter,
    make_draft,
    read_draft,
    write_plainly,
)
from reprod_align.porting.remedies import REMEDIES
from tests.porting.drafts import make_bench
from tests.porting.paconvert import needs_paconvert

import pytest

MARKED = ">>>>>>@torch.jit._overload\nx = paddle.ones([2])\n>>>>>>    y = torch.fx.wrap(x)\n"
BESIDE = """
import sys, pathlib
out = pathlib.Path(sys.argv[4])
out.parent.mkdir()
out.write_text("a = 1")
(out.parent / "paddle_utils.py").write_text("b")
"""


def test_marks_are_taken_off_and_listed() -> None:
    read = read_draft(MARKED, said="There are 12 Pytorch APIs in this Project:")
    assert read.text == "@torch.jit._overload\nx = paddle.ones([2])\n    y = torch.fx.wrap(x)\n"
    assert read.left == ("@torch.jit._overload", "y = torch.fx.wrap(x)") and read.calls == 12


def test_without_paconvert_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ReprodError, match=f"pip install paconvert=={VERSION}"):
        find_converter()


def use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a stand-in in place of PaConvert."""
    script = tmp_path / "converter.py"
    script.write_text(text)
    monkeypatch.setattr(paconvert, "find_converter", lambda: [sys.executable, str(script)])


def test_what_paconvert_writes_beside_the_draft_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path, monkeypatch, BESIDE)
    made = make_draft("a.py", "")
    assert (made.text, made.helpers) == ("a = 1\n", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise SystemExit('no memory')", "exit code 1: no memory"),
        ("print('nothing done')", "wrote no draft of a.py: nothing done"),
        ("import os; os.abort()", "ended with exit code -6"),
        ("import time; time.sleep(60)", "took longer than 0.5 s"),
    ],
)
def test_its_failures_are_one_line(
    text: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(tmp_path, monkeypatch, text)
    monkeypatch.setattr(paconvert, "_PATIENCE", 0.5 if "sleep" in text else 60)
    with pytest.raises(ReprodError, match=message):
        make_draft("a.py", "")


def test_a_converter_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paconvert, "find_converter", lambda: ["/nowhere/paconvert"])
    with pytest.raises(ReprodError, match="cannot start /nowhere/paconvert"):
        make_draft("a.py", "")


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("def f(x: Tensor | None): return nn.ReLU()(x)",
         "def f(x: torch.Tensor | None): return torch.nn.ReLU()(x)"),
        ("def f(tensor): return tensor.dtype, tensor(1)", None),
        ("def f(self):\n    self.register_load_state_dict_pre_hook(print)\n    return 1",
         "def f(self):\n    return 1"),
        ("def f(x):\n    torch._C._log_api_usage_once('f')", "def f(x):\n    pass"),
        ("def f(x):\n    torch._assert(\n        len(x) > 0,\n        f'{len(x)} rows')",
         "def f(x):\n    assert len(x) > 0, f'{len(x)} rows'"),
        ("@torch.jit.unused\n@torch.no_grad()\ndef f(x): return torch.jit.script(x)",
         "@torch.no_grad()\ndef f(x): return x"),
        ("rows = torch.jit.annotate(list[Tensor], [])", "rows = []"),
        ("@torch.no_grad\ndef f(x): return x", "@torch.no_grad()\ndef f(x): return x"),
        ("y = exp(x)", "y = torch.exp(x)"),
    ],
)  # fmt: skip
def test_what_a_converter_reads(text: str, written: str | None) -> None:
    head = "import torch\nfrom torch import Tensor, exp, nn, tensor\n"
    assert write_names_in_full(f"{head}{text}\n") == f"{head}{written or text}\n"


@needs_paconvert
def test_paconvert_itself() -> None:
    made = make_draft("a.py", "import torch\n\nx = torch.ones(2, 3)\n")
    assert "paddle.ones" in made.text and made.calls == 1 and not made.left


SOURCE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(6, 4, bias=False), nn.LayerNorm(4, eps=1e-3)])

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return torch.cat([torch.softmax(x, dim=-1), USED], dim=-1)
"""
DRAFT = (
    SOURCE.replace("import torch\nfrom torch import nn\n", "import paddle\n")
    .replace("nn.Linear", "paddle.compat.nn.Linear")
    .replace("nn.LayerNorm", "paddle.nn.LayerNorm")
    .replace("nn.Module", "paddle.nn.Module")
    .replace("torch.softmax", "paddle.compat.nn.functional.softmax")
    .replace("torch.cat", "paddle.cat")
)


def written(folder: Path, used: str) -> str:
    """Return the plain port of a model that ends in `used`."""
    source, draft = SOURCE.replace("USED", used), DRAFT.replace("USED", used)
    bench = make_bench(folder, source, draft)
    course = mend(Code(bench.draft.text), bench, REMEDIES, bench.file)
    assert course.outcome.passed and not course.steps
    write_plainly(course, bench, bench.file)
    assert course.outcome.passed and [step.remedy for step in course.steps] == ["style"]
    return course.code.text


def test_names_and_keywords_are_paddles(tmp_path: Path) -> None:
    text = written(tmp_path, "x")
    assert "compat" not in text and "class Net(paddle.nn.Layer)" in text
    assert "paddle.nn.Linear(6, 4, bias_attr=False)" in text and "epsilon=1e-3" in text
    assert "paddle.concat([paddle.nn.functional.softmax(x, axis=-1), x], axis=-1)" in text


def test_a_rule_that_costs_the_verdict_is_left_out(tmp_path: Path) -> None:
    text = written(tmp_path, "x @ self.parts[0].weight")  # (out, in), as PyTorch's
    assert "paddle.compat.nn.Linear" in text and "paddle.nn.LayerList" in text
