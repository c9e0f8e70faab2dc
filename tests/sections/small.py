"""A small decoder and its port, with a fault where one is asked for, judged in memory and in sections."""

from pathlib import Path
from typing import Any

from reprod_align import Report, align, align_sections
from reprod_align.backends import paddle as paddle_init
from reprod_align.backends import torch as torch_init
from reprod_align.pair import PairSpec, paddle_side, torch_side
from reprod_align.sections.models import SectionedPair, build_model, divide_pair
from reprod_align.weights.reading import open_checkpoint

import numpy as np
import paddle
import torch
from safetensors.torch import save_file

WORDS, SIZE, LAYERS = 23, 16, 3
LIMIT = 860
"""parameters of a section: a layer has 848"""


class TorchEmbed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(WORDS, SIZE)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids) * 4.0


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(SIZE)
        self.mix = torch.nn.Linear(SIZE, SIZE)
        self.up = torch.nn.Linear(SIZE, SIZE)
        self.down = torch.nn.Linear(SIZE, SIZE)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        normed = self.norm(hidden)
        weights = torch.softmax(normed @ normed.transpose(1, 2) / 4.0 + mask, -1)
        hidden = hidden + self.mix(weights @ normed)
        return hidden + self.down(torch.tanh(self.up(hidden)))


class TorchNet(torch.nn.Module):
    def __init__(self, tied: bool = False) -> None:
        super().__init__()
        self.embed = TorchEmbed()
        self.layers = torch.nn.ModuleList(TorchBlock() for _ in range(LAYERS))
        self.norm = torch.nn.LayerNorm(SIZE)
        self.head = torch.nn.Linear(SIZE, WORDS, bias=False)
        if tied:
            self.head.weight = self.embed.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids)
        mask = torch.full((ids.shape[1], ids.shape[1]), -1e9).triu(1).to(hidden.dtype)
        for layer in self.layers:
            hidden = layer(hidden, mask=mask)
        return self.head(self.norm(hidden))


class PaddleEmbed(paddle.nn.Layer):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.table = paddle.nn.Embedding(WORDS, SIZE)
        self.factor = factor

    def forward(self, ids: Any) -> Any:
        return self.table(ids) * self.factor


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, fault: str) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(
            SIZE, epsilon={"layer": 1e-3, "refused": 1e-2}.get(fault, 1e-5)
        )
        self.mix = paddle.nn.Linear(SIZE, SIZE)
        self.up = paddle.nn.Linear(SIZE, SIZE)
        self.down = paddle.nn.Linear(SIZE, SIZE)
        self.fault = fault

    def forward(self, hidden: Any, mask: Any) -> Any:
        normed = self.norm(hidden)
        scale = 5.0 if self.fault == "code" else 4.0
        weights = paddle.nn.functional.softmax(normed @ normed.transpose([0, 2, 1]) / scale + mask)
        hidden = hidden + self.mix(weights @ normed)
        change = self.down(paddle.tanh(self.up(hidden)))
        return (hidden.detach() if self.fault == "backward" else hidden) + change


class PaddleHead(paddle.nn.Layer):
    """A Linear without bias whose weight may be the embedding's."""

    def __init__(self, weight: Any, fault: str) -> None:
        super().__init__()
        self.weight, self.fault = weight, fault

    def forward(self, hidden: Any) -> Any:
        scores = paddle.matmul(hidden, self.weight, transpose_y=True)
        return scores * 1.25 if self.fault == "head" else scores


class PaddleNet(paddle.nn.Layer):
    def __init__(self, fault: str = "", tied: bool = False) -> None:
        super().__init__()
        self.embed = PaddleEmbed(3.0 if fault == "embedding" else 4.0)
        inner = fault if fault in ("layer", "refused", "code", "backward") else ""
        self.layers = paddle.nn.LayerList(
            PaddleBlock(inner if at == 1 else "") for at in range(LAYERS)
        )
        self.norm = paddle.nn.LayerNorm(SIZE)
        own = self.create_parameter([WORDS, SIZE])
        self.head = PaddleHead(self.embed.table.weight if tied else own, fault)
        self.fault = fault

    def forward(self, ids: Any) -> Any:
        hidden = self.embed(ids)
        shape, above = [ids.shape[1]] * 2, 2 if self.fault == "mask" else 1
        mask = paddle.triu(paddle.full(shape, -1e9), above).astype(hidden.dtype)
        order = [1, 0, 2] if self.fault == "order" else range(LAYERS)
        if self.fault == "between":
            hidden = hidden * 1.01
        for at in order:
            hidden = self.layers[at](hidden, mask=mask)
        return self.head(self.norm(hidden))


IDS = {"ids": np.random.default_rng(0).integers(0, WORDS, (2, 6))}


def write_weights(folder: Path, tied: bool = False) -> Path:
    """Save a model's weights; return the file."""
    torch.manual_seed(0)
    state = TorchNet(tied).state_dict()
    if tied:
        del state["head.weight"]
    path = folder / "model.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in state.items()}, path)
    return path


def judge_in_memory(fault: str = "", tied: bool = False, split: bool = False) -> Report:
    torch.manual_seed(0)
    paddle.seed(0)
    return align(TorchNet(tied), PaddleNet(fault, tied and not split), IDS)


def judge_in_sections(
    folder: Path, fault: str = "", tied: bool = False, split: bool = False, **options: Any
) -> Report:
    return align_sections(
        lambda: TorchNet(tied),
        lambda: PaddleNet(fault, tied and not split),
        IDS,
        write_weights(folder, tied),
        section_size=LIMIT,
        **options,
    )


def places(report: Report) -> list[tuple[object, ...]]:
    """Return what the findings say of where and in which lines."""
    return sorted(
        (f.stage, f.torch_name, f.paddle_name, str(f.torch_line), str(f.paddle_line))
        for f in report.findings
    )


def divide(folder: Path, limit: int, fault: str = "", tied: bool = False) -> SectionedPair:
    """Return the divided pair."""
    ours = torch_side(build_model(lambda: TorchNet(tied), torch_init))
    theirs = paddle_side(build_model(lambda: PaddleNet(fault, tied), paddle_init))
    weights = open_checkpoint(write_weights(folder, tied)).tensors
    return divide_pair(PairSpec(ours, theirs, IDS, further=False), weights, None, limit)


def write_paddle_weights(folder: Path, wrong: str = "") -> Path:
    """Save the port's weights as Paddle does, PyTorch's but for the tensor named `wrong`; return the file."""
    torch.manual_seed(0)
    state = {name: tensor.numpy() for name, tensor in TorchNet().state_dict().items()}
    turned = {name: value.T if name.startswith("layers") and value.ndim == 2 else value
              for name, value in state.items()}  # fmt: skip
    if wrong:
        turned[wrong] = turned[wrong] * 1.01
    path = folder / "model.pdparams"
    paddle.save({name: paddle.to_tensor(value) for name, value in turned.items()}, str(path))
    return path
