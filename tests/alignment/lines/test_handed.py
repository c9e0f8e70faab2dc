"""What the code at fault is handed is wrong, or made elsewhere: the line that hands or makes it is named."""

from pathlib import Path

import reprod_align
from tests.alignment.lines import torch_handed
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = Path(__file__).with_name("paddle_handed.py")
# what is changed in the port, to what, and the module that is named
FAULTS = {
    "a module is handed another value": (
        "self.attention(x, x, x, mask)", "self.attention(x, before, x, mask)", "first",
    ),
    "a mask of a function hides other places": (
        "seen = places < (places", "seen = places >= (places", "",
    ),
    "a module that nothing compares hands on another value": (
        "(turn(k) * sin)", "(turn(sin) * sin)", "first.attention",
    ),
    "another value is laid out": (
        "q = self.split(made)", "q = self.split(query)", "first.attention",
    ),
    "a condition of the constructor decides a factor": (
        "2.0 if scaled else 1.0", "2.0 if not scaled else 1.0", "",
    ),
    "a condition decides whether a module is called": (
        "if self.pooler is not None", "if self.pooler is None", "pooler",
    ),
}  # fmt: skip


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    ids = np.random.default_rng(0).integers(0, 20, (2, 7))
    return reprod_align.align(torch_handed.Model(), load(port).Model(), (ids,))


def test_the_port_is_faithful() -> None:
    report = judge(PORT)
    assert report.passed, report.summary()


@pytest.mark.edits(400)
@pytest.mark.parametrize("name", FAULTS)
def test_the_line_is_named(name: str, tmp_path: Path) -> None:
    before, after, module = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
    assert finding.paddle_name == module


def test_a_table_that_the_constructor_makes_is_named_where_it_is_made(tmp_path: Path) -> None:
    """Few edits are tried here: one that mends what is read of it is as good."""
    wrong = "paddle.ones([64, 64]), 1)"
    port, changed = plant(PORT, "paddle.ones([64, 64]))", wrong, tmp_path)
    finding = judge(port).findings[0]
    assert (finding.paddle_name, finding.paddle_line) == ("second.attention", f"{port}:{changed}")


TOWER = """from paddle import nn


class Tower(nn.Layer):
    def __init__(self, activation):
        super().__init__()
        self.block = nn.TransformerEncoderLayer(8, 2, 16, 0.0)
        self.block.activation = activation

    def forward(self, x):
        return self.block(x)
"""
MODEL = """from paddle import nn
from paddle.nn import functional as F
from tower_of_a_library import Tower


def gate(x):
    return x * F.sigmoid(1.702 * x)


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.tower, self.head = Tower(gate), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.tower(x))
"""


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.self_attn = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.linear1, self.linear2 = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
        self.norm1, self.norm2 = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm1(x + self.self_attn(x, x, x, need_weights=False)[0])
        y = self.linear1(x)
        return self.norm2(x + self.linear2(y * torch.sigmoid(1.702 * y)))  # type: ignore[no-any-return]


class TorchModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tower, self.head = Block(), torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.tower(x))  # type: ignore[no-any-return]


@pytest.mark.parametrize("activation", ["F.sigmoid(1.702 * x)", "1.702 * x"])
def test_a_function_that_a_library_hands_to_a_layer(
    activation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "tower_of_a_library.py").write_text(TOWER)
    port = tmp_path / "model.py"
    port.write_text(MODEL.replace("F.sigmoid(1.702 * x)", activation))
    torch.manual_seed(0)
    batch = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    report = reprod_align.align(TorchModel(), load(port).Model(), (batch,))
    places = [finding.paddle_line for finding in report.findings[:1]]
    assert places == ([] if "F." in activation else [f"{port}:7"]), str(report)


CHOSEN = """from paddle import nn
from paddle.nn import functional as F


class Interest(nn.Layer):
    def __init__(self):
        super().__init__()
        self.second = nn.Linear(8, 1)

    def forward(self, x, present):
        weights = self.second(x).squeeze(-1) + (present - 1.0) * 10000.0
        return (F.softmax(weights, axis=1).unsqueeze(-1) * x).sum(axis=1)


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.interest = nn.Embedding(20, 8), Interest()

    def forward(self, ids):
        seen = self.table(ids)
        present = (ids != 0).astype(seen.dtype)
        return self.interest(seen, present)
"""


class Interest(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.second = torch.nn.Linear(8, 1)

    def forward(self, x: torch.Tensor, present: torch.Tensor) -> torch.Tensor:
        weights = self.second(x).squeeze(-1) + (present - 1.0) * 10000.0
        return (torch.softmax(weights, dim=1).unsqueeze(-1) * x).sum(dim=1)


class Chosen(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.interest = torch.nn.Embedding(20, 8), Interest()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        seen = self.table(ids)
        present = (ids != 0).to(seen.dtype)
        return self.interest(seen, present)  # type: ignore[no-any-return]


@pytest.mark.edits(400)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ids != 0", "ids != 0"),
        # so would another mask, which agrees: `ids == 0` for `ids != 0`
        ("(present - 1.0)", "(1.0 - present)"),
    ],
)
def test_an_edit_that_makes_up_for_a_mistake_is_not_preferred(
    before: str, after: str, tmp_path: Path
) -> None:
    port = tmp_path / "model.py"
    port.write_text(CHOSEN)
    port, changed = plant(port, before, after, tmp_path)
    torch.manual_seed(0)
    ids = np.random.default_rng(0).integers(0, 20, (3, 7))
    ids[:, -2:] = 0
    report = reprod_align.align(Chosen(), load(port).Model(), (ids,))
    assert (
        report.passed
        if before == after
        else (report.findings[0].paddle_line == f"{port}:{changed}")
    ), str(report)


POOLED = """import paddle
from paddle import nn


class Pooler(nn.Layer):
    def __init__(self, activate=True):
        super().__init__()
        self.activate, self.dense = activate, nn.Linear(8, 8)

    def forward(self, hidden):
        first = hidden[:, 0]
        if not self.activate:
            return first
        else:
            pooled_output = self.dense(first)
            pooled_output = paddle.tanh(pooled_output)
            return pooled_output


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.pooler = nn.Embedding(20, 8), Pooler()

    def forward(self, ids):
        hidden = self.table(ids)
        return hidden, self.pooler(hidden)
"""


class Pooler(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense = torch.nn.Linear(8, 8)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        pooled_output = self.dense(hidden[:, 0])
        pooled_output = torch.tanh(pooled_output)
        return pooled_output


class Pooled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.pooler = torch.nn.Embedding(20, 8), Pooler()

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden = self.table(ids)
        return hidden, self.pooler(hidden)


@pytest.mark.edits(300)
def test_an_edit_that_gives_the_right_shape_alone_mends_nothing(tmp_path: Path) -> None:
    """`self.activate` in place of `not self.activate` does: it returns a value that was not compared."""
    port = tmp_path / "model.py"
    port.write_text(POOLED)
    port, changed = plant(port, "paddle.tanh(pooled_output)", "paddle.tanh(hidden)", tmp_path)
    ids = np.random.default_rng(0).integers(0, 20, (3, 7))
    report = reprod_align.align(Pooled(), load(port).Model(), (ids,))
    (finding,) = report.findings  # the model hands on what its pooler returns
    assert (finding.paddle_name, finding.paddle_line) == ("pooler", f"{port}:{changed}")
    assert finding.edit is not None and finding.edit.after == "pooled_output"


CAUSAL = """import paddle
from paddle import nn


class Attention(nn.Layer):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))

    def forward(self, x, attn_mask=None):
        scores = self.q(x) @ self.k(x).transpose([0, 2, 1])
        if attn_mask is not None:
            scores = scores + attn_mask
        return self.out(nn.functional.softmax(scores, -1) @ self.v(x))


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = Attention(), nn.LayerNorm(8)

    def forward(self, x, tgt_mask=None):
        return self.norm(x + self.attention(x, tgt_mask))


class Decoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([Layer() for _ in range(2)])

    def forward(self, x, tgt_mask):
        for block in self.layers:
            x = block(x, tgt_mask=tgt_mask)
        return x


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()

    def forward(self, x):
        return self.decoder(x, paddle.triu(paddle.full([x.shape[1]] * 2, -1e9), 1))
"""


class CausalAttention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (torch.nn.Linear(8, 8) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.q(x), self.k(x), self.v(x)
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, scale=1.0
        )
        return self.out(mixed)


class CausalLayer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention, self.norm = CausalAttention(), torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.attention(x))


class CausalDecoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([CausalLayer() for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.layers:
            x = block(x)
        return x


class CausalModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = CausalDecoder()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder(x)


@pytest.mark.edits(400)
def test_a_mask_that_no_layer_of_a_list_is_handed_is_named_where_they_are_called(
    tmp_path: Path,
) -> None:
    file, rows = tmp_path / "port.py", np.random.default_rng(0).normal(size=(2, 5, 8))
    file.write_text(CAUSAL)
    assert reprod_align.align(CausalModel(), load(file).Model(), (rows,)).passed
    port, changed = plant(file, "block(x, tgt_mask=tgt_mask)", "block(x)", tmp_path)
    finding = reprod_align.align(CausalModel(), load(port).Model(), (rows,)).findings[0]
    assert finding.paddle_line == f"{port}:{changed}", f"{finding} {finding.paddle_code}"
    assert finding.edit is not None and finding.edit.after == "block(x, tgt_mask=tgt_mask)"
