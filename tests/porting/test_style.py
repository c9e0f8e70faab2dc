"""Plain Paddle: what only looks like PyTorch is rewritten, and the port stays faithful."""

from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.porting.loop import mend
from reprod_align.porting.paconvert import write_plainly
from reprod_align.porting.remedies import REMEDIES
from tests.porting.drafts import make_bench

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
