"""Multi-layer perceptrons: Linear layers, activations, norms, dropout, residuals and gates."""

from collections import OrderedDict
from functools import partial

from tests.pairs.case import case
from tests.pairs.plant import (
    both,
    forward,
    freeze,
    layer_at,
    misconverter,
    planter,
    port,
    put,
    swap,
    tensor,
)

import numpy as np
import paddle
import torch
from paddle.nn import functional as F

X = {"x": np.random.default_rng(11).standard_normal((6, 7)).astype("float32")}


class TorchBlock(torch.nn.Module):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width, eps=1e-5)
        self.fc1 = torch.nn.Linear(width, hidden)
        self.act = torch.nn.GELU()
        self.drop = torch.nn.Dropout(0.25)
        self.fc2 = torch.nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, width)
        return x + self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm = paddle.nn.LayerNorm(width, epsilon=1e-5)
        self.fc1 = paddle.nn.Linear(width, hidden)
        self.act = paddle.nn.GELU()
        self.drop = paddle.nn.Dropout(0.25)
        self.fc2 = paddle.nn.Linear(hidden, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, width)
        return x + self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))


class TorchMlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Linear(7, 12)
        self.stem_norm = torch.nn.BatchNorm1d(12, eps=1e-5, momentum=0.1)
        self.blocks = torch.nn.ModuleList(TorchBlock(12, 20) for _ in range(2))
        self.mix = torch.nn.Linear(12, 12)
        self.gain = torch.nn.Parameter(torch.ones(12))
        self.gate = torch.nn.Linear(12, 12)
        self.leak = torch.nn.LeakyReLU(0.1)
        self.out_norm = torch.nn.LayerNorm(12, eps=1e-6)
        self.slope = torch.nn.PReLU(12)
        self.head = torch.nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 7) -> (B, 5)
        x = torch.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        x = x + torch.tanh(self.mix(x)) * self.gain
        x = x * torch.softmax(self.gate(x), dim=-1)
        x = self.slope(self.out_norm(self.leak(x)))
        return self.head(x)


class PaddleMlp(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = paddle.nn.Linear(7, 12)
        self.stem_norm = paddle.nn.BatchNorm1D(12, epsilon=1e-5, momentum=0.9)
        self.blocks = paddle.nn.LayerList(PaddleBlock(12, 20) for _ in range(2))
        self.mix = paddle.nn.Linear(12, 12)
        self.gain = self.create_parameter([12])
        self.gate = paddle.nn.Linear(12, 12)
        self.leak = paddle.nn.LeakyReLU(0.1)
        self.out_norm = paddle.nn.LayerNorm(12, epsilon=1e-6)
        self.slope = paddle.nn.PReLU(12)
        self.head = paddle.nn.Linear(12, 5)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 7) -> (B, 5)
        x = F.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        x = x + paddle.tanh(self.mix(x)) * self.gain
        x = x * F.softmax(self.gate(x), axis=-1)
        x = self.slope(self.out_norm(self.leak(x)))
        return self.head(x)


def _block_forward(function):
    return forward("blocks.1", function)


def _root(relu=F.relu, tanh=paddle.tanh, gate=F.softmax, norm_first=True, **switch):
    """Return a forward of the root in which the given steps differ."""

    def function(self, x):
        x = self.stem(x)
        x = relu(self.stem_norm(x)) if norm_first else self.stem_norm(relu(x))
        for block in switch.get("order", list)(self.blocks):
            x = block(x)
        scale = switch.get("gain", lambda it: it)(self.gain)
        x = x + tanh(self.mix(switch.get("mix_input", lambda it: it)(x))) * scale
        x = x * gate(self.gate(switch.get("gate_input", lambda it: it)(x)))
        x = self.leak(x)
        x = self.slope(self.out_norm(x)) if switch.get("slope_last", True) else x
        if not switch.get("slope_last", True):
            x = self.out_norm(self.slope(x))
        return switch.get("last", lambda it: it)(self.head(x))

    return forward("", function)


_bug = planter(TorchMlp, PaddleMlp, X)
_misconverted = misconverter(TorchMlp, PaddleMlp, X)

WEIGHTS = [
    _misconverted(
        "mlp weights: square Linear not transposed", tensor("mix.weight", lambda w: w.T),
        "mix.weight", "mix",
    ),
    _misconverted(
        "mlp weights: fc1 of the two blocks exchanged",
        swap("blocks.0.fc1.weight", "blocks.1.fc1.weight"),
        "blocks.0.fc1.weight", "blocks.1.fc1.weight", "blocks.0.fc1", "blocks.1.fc1",
    ),
    _misconverted(
        "mlp weights: two biases of one shape exchanged", swap("mix.bias", "gate.bias"),
        "mix.bias", "gate.bias", "mix", "gate",
    ),
    _misconverted(
        "mlp weights: gamma and beta exchanged",
        swap("blocks.1.norm.weight", "blocks.1.norm.bias"),
        "blocks.1.norm.weight", "blocks.1.norm.bias", "blocks.1.norm",
    ),
    _misconverted(
        "mlp weights: head left as it was drawn",
        tensor("head.weight", lambda w: paddle.randn(w.shape, w.dtype) * 0.1),
        "head.weight", "head",
    ),
    _misconverted(
        "mlp weights: one bias left at zero", tensor("blocks.0.fc2.bias", paddle.zeros_like),
        "blocks.0.fc2.bias", "blocks.0.fc2",
    ),
    _misconverted(
        "mlp weights: free parameter left at one", tensor("gain", paddle.ones_like), "gain"
    ),
    _misconverted(
        "mlp weights: one percent too large", tensor("stem.weight", lambda w: w * 1.01),
        "stem.weight", "stem",
    ),
    _misconverted(
        "mlp weights: went through float16",
        tensor("gate.weight", lambda w: w.astype("float16")),
        "gate.weight", "gate",
    ),
    _misconverted(
        "mlp weights: running mean not converted", tensor("stem_norm._mean", paddle.zeros_like),
        "stem_norm.running_mean", "stem_norm._mean", "stem_norm",
    ),
    _misconverted(
        "mlp weights: running variance stored as deviation",
        tensor("stem_norm._variance", paddle.sqrt),
        "stem_norm.running_var", "stem_norm._variance", "stem_norm",
    ),
    _misconverted(
        "mlp weights: running statistics exchanged",
        swap("stem_norm._mean", "stem_norm._variance"),
        "stem_norm.running_mean", "stem_norm._mean",
        "stem_norm.running_var", "stem_norm._variance", "stem_norm",
    ),
    _misconverted(
        "mlp weights: rows shifted by one", tensor("head.weight", lambda w: w.roll(1, 0)),
        "head.weight", "head",
    ),
    _misconverted(
        "mlp weights: PReLU slope left at its default",
        tensor("slope._weight", lambda w: paddle.full_like(w, 0.25)),
        "slope.weight", "slope._weight", "slope",
    ),
]  # fmt: skip

SETTINGS = [
    _bug(
        "mlp: LayerNorm epsilon 1e-6 for 1e-5",
        put("blocks.1.norm", lambda: paddle.nn.LayerNorm(12, epsilon=1e-6)),
        "blocks.1.norm",
    ),
    _bug(
        "mlp: LayerNorm epsilon left at Paddle's default",
        put("out_norm", lambda: paddle.nn.LayerNorm(12)),
        "out_norm",
    ),
    _bug(
        "mlp: LayerNorm epsilon 1e-12",
        put("blocks.0.norm", lambda: paddle.nn.LayerNorm(12, epsilon=1e-12)),
        "blocks.0.norm",
    ),
    _bug(
        "mlp: LayerNorm without its bias",
        put("blocks.0.norm", lambda: paddle.nn.LayerNorm(12, bias_attr=False)),
        "blocks.0.norm", "blocks.0.norm.bias",
    ),
    _bug(
        "mlp: LayerNorm without its weight",
        put("blocks.1.norm", lambda: paddle.nn.LayerNorm(12, weight_attr=False)),
        "blocks.1.norm", "blocks.1.norm.weight",
    ),
    _bug(
        "mlp: BatchNorm momentum not inverted",
        put("stem_norm", lambda: paddle.nn.BatchNorm1D(12, momentum=0.1)),
        "stem_norm",
    ),
    _bug(
        "mlp: BatchNorm momentum 0.99",
        put("stem_norm", lambda: paddle.nn.BatchNorm1D(12, momentum=0.99)),
        "stem_norm",
    ),
    _bug(
        "mlp: BatchNorm epsilon 1e-3",
        put("stem_norm", lambda: paddle.nn.BatchNorm1D(12, epsilon=1e-3)),
        "stem_norm",
    ),
    _bug(
        "mlp: BatchNorm always on its running statistics",
        put("stem_norm", lambda: paddle.nn.BatchNorm1D(12, use_global_stats=True)),
        "stem_norm",
    ),
    _bug(
        "mlp: BatchNorm never on its running statistics",
        put("stem_norm", lambda: paddle.nn.BatchNorm1D(12, use_global_stats=False)),
        "stem_norm",
    ),
    _bug("mlp: dropout rate", put("blocks.0.drop", lambda: paddle.nn.Dropout(0.1)), "blocks.0.drop"),
    _bug(
        "mlp: dropout keep rate for drop rate",
        put("blocks.1.drop", lambda: paddle.nn.Dropout(0.75)),
        "blocks.1.drop",
    ),
    _bug(
        "mlp: dropout scales at inference",
        put("blocks.1.drop", lambda: paddle.nn.Dropout(0.25, mode="downscale_in_infer")),
        "blocks.1.drop",
    ),
    _bug("mlp: dropout gone", put("blocks.0.drop", paddle.nn.Identity), "blocks.0.drop"),
    _bug(
        "mlp: dropout of whole rows",
        put("blocks.0.drop", lambda: paddle.nn.Dropout(0.25, axis=0)),
        "blocks.0.drop",
    ),
    _bug(
        "mlp: GELU by tanh",
        put("blocks.0.act", lambda: paddle.nn.GELU(approximate=True)),
        "blocks.0.act",
    ),
    _bug("mlp: SiLU for GELU", put("blocks.1.act", paddle.nn.Silu), "blocks.1.act"),
    _bug("mlp: ReLU for GELU", put("blocks.1.act", paddle.nn.ReLU), "blocks.1.act"),
    _bug("mlp: LeakyReLU at Paddle's default slope", put("leak", paddle.nn.LeakyReLU), "leak"),
    _bug("mlp: ReLU for LeakyReLU", put("leak", paddle.nn.ReLU), "leak"),
    _bug("mlp: PReLU with one slope", put("slope", lambda: paddle.nn.PReLU(1)), "slope",
         "slope.weight", "slope._weight"),
    _bug("mlp: PReLU as LeakyReLU", put("slope", lambda: paddle.nn.LeakyReLU(0.25)), "slope",
         "slope.weight"),
    _bug(
        "mlp: hidden bias missing",
        put("blocks.0.fc1", lambda: paddle.nn.Linear(12, 20, bias_attr=False)),
        "blocks.0.fc1", "blocks.0.fc1.bias",
    ),
    _bug(
        "mlp: head bias missing",
        put("head", lambda: paddle.nn.Linear(12, 5, bias_attr=False)),
        "head", "head.bias",
    ),
    _bug(
        "mlp: bias before a norm missing",
        put("stem", lambda: paddle.nn.Linear(7, 12, bias_attr=False)),
        "stem", "stem.bias",
    ),
]  # fmt: skip

FORWARD = [
    _bug(
        "mlp: activation left out",
        _block_forward(lambda self, x: x + self.fc2(self.drop(self.fc1(self.norm(x))))),
        "blocks.1", "blocks.1.act",
    ),
    _bug(
        "mlp: dropout never called",
        _block_forward(lambda self, x: x + self.fc2(self.act(self.fc1(self.norm(x))))),
        "blocks.1", "blocks.1.drop",
    ),
    _bug(
        "mlp: dropout at the wrong place",
        _block_forward(
            lambda self, x: x + self.drop(self.fc2(self.act(self.fc1(self.norm(x)))))
        ),
        "blocks.1", "blocks.1.drop",
    ),
    _bug(
        "mlp: dropout once more",
        _block_forward(
            lambda self, x: x + self.drop(self.fc2(self.drop(self.act(self.fc1(self.norm(x))))))
        ),
        "blocks.1", "blocks.1.drop",
    ),
    _bug(
        "mlp: functional dropout always trains",
        _block_forward(
            lambda self, x: x + self.fc2(F.dropout(self.act(self.fc1(self.norm(x))), 0.25))
        ),
        "blocks.1", "blocks.1.drop",
    ),
    _bug(
        "mlp: functional dropout never trains",
        _block_forward(
            lambda self, x: x
            + self.fc2(F.dropout(self.act(self.fc1(self.norm(x))), 0.25, training=False))
        ),
        "blocks.1", "blocks.1.drop",
    ),
    _bug(
        "mlp: residual left out",
        _block_forward(lambda self, x: self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))),
        "blocks.1",
    ),
    _bug(
        "mlp: residual from after the norm",
        _block_forward(
            lambda self, x: self.norm(x)
            + self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))
        ),
        "blocks.1",
    ),
    _bug(
        "mlp: norm after the residual",
        _block_forward(
            lambda self, x: self.norm(x + self.fc2(self.drop(self.act(self.fc1(x)))))
        ),
        "blocks.1", "blocks.1.norm",
    ),
    _bug(
        "mlp: residual halved",
        _block_forward(
            lambda self, x: 0.5 * x + self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))
        ),
        "blocks.1",
    ),
    _bug(
        "mlp: norm without gradient to its input",
        _block_forward(
            lambda self, x: x + self.fc2(self.drop(self.act(self.fc1(self.norm(x.detach())))))
        ),
        "blocks.1", stages=("backward",),
    ),
    _bug(
        "mlp: residual without gradient",
        _block_forward(
            lambda self, x: x.detach() + self.fc2(self.drop(self.act(self.fc1(self.norm(x)))))
        ),
        "blocks.1", stages=("backward",),
    ),
    _bug(
        "mlp: hidden layer runs under no_grad",
        _block_forward(
            lambda self, x: x + self.fc2(self.drop(_without_gradient(self.act, self.fc1)(self.norm(x))))
        ),
        "blocks.1", "blocks.1.fc1", "blocks.1.fc1.weight", "blocks.1.fc1.bias",
        stages=("backward",),
    ),
    _bug("mlp: ReLU before the norm", _root(norm_first=False), "", "stem_norm"),
    _bug("mlp: first activation left out", _root(relu=lambda x: x), ""),
    _bug("mlp: first activation clipped at one", _root(relu=lambda x: x.clip(0, 1)), ""),
    _bug("mlp: tanh left out", _root(tanh=lambda x: x), ""),
    _bug("mlp: sigmoid for tanh", _root(tanh=F.sigmoid), ""),
    _bug("mlp: softmax over the batch", _root(gate=lambda x: F.softmax(x, axis=0)), ""),
    _bug("mlp: sigmoid for softmax", _root(gate=F.sigmoid), ""),
    _bug("mlp: log of softmax for softmax", _root(gate=F.log_softmax), ""),
    _bug("mlp: gain left out", _root(gain=lambda _: 1.0), "", "gain"),
    _bug("mlp: gain without gradient", _root(gain=lambda it: it.detach()), "", "gain",
         stages=("backward",)),
    _bug("mlp: gate input without gradient", _root(gate_input=lambda x: x.detach()), "",
         stages=("backward",)),
    _bug("mlp: mixing input without gradient", _root(mix_input=lambda x: x.detach()), "",
         stages=("backward",)),
    _bug("mlp: slope before norm", _root(slope_last=False), "", "slope", "out_norm"),
    _bug("mlp: first block twice", _root(order=lambda it: [it[0], it[0]]), "", "blocks.1",
         "blocks"),
    _bug("mlp: blocks in the other order", _root(order=lambda it: [it[1], it[0]]), "", "blocks"),
    _bug("mlp: last block left out", _root(order=lambda it: it[:1]), "", "blocks.1", "blocks"),
    _bug("mlp: softmax at the end", _root(last=F.softmax), ""),
    _bug("mlp: output clipped", _root(last=lambda x: x.clip(-0.3, 0.3)), ""),
    _bug("mlp: output rounded to float16", _root(last=lambda x: x.astype("float16").astype(x.dtype)),
         ""),
    _bug("mlp: half of the output's gradient lost",
         _root(last=lambda x: 0.5 * x + 0.5 * x.detach()), "", stages=("backward",)),
    _bug("mlp: frozen head weight", freeze("head.weight"), "head.weight", "head",
         stages=("audit", "backward")),
    _bug("mlp: frozen hidden bias", freeze("blocks.0.fc1.bias"), "blocks.0.fc1.bias",
         "blocks.0.fc1", stages=("audit", "backward")),
    _bug("mlp: frozen norm", freeze("blocks.1.norm.weight", "blocks.1.norm.bias"),
         "blocks.1.norm.weight", "blocks.1.norm.bias", "blocks.1.norm",
         stages=("audit", "backward")),
    _bug("mlp: bias that is still zero missing",
         put("out_norm", lambda: paddle.nn.LayerNorm(12, epsilon=1e-6, bias_attr=False)),
         "out_norm", "out_norm.bias", fresh=True),
]  # fmt: skip


def _without_gradient(outer, inner):
    def run(x):
        with paddle.no_grad():
            return outer(inner(x))

    return run


class TorchChain(torch.nn.Module):
    """Modules without activations between them; the activations are functions."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(7, 9), torch.nn.Linear(9, 9))
        self.out = torch.nn.Linear(9, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (B, 7) -> (B, 4)
        for layer in self.body:
            x = torch.nn.functional.gelu(layer(x))
        return self.out(x)


class PaddleChain(paddle.nn.Layer):
    """The same chain with the activations as layers: the indexes shift."""

    def __init__(self):
        super().__init__()
        self.body = paddle.nn.Sequential(
            paddle.nn.Linear(7, 9), paddle.nn.GELU(), paddle.nn.Linear(9, 9), paddle.nn.GELU()
        )
        self.out = paddle.nn.Linear(9, 4)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 7) -> (B, 4)
        return self.out(self.body(x))


class PaddleNested(paddle.nn.Layer):
    """The same chain under other names, in a wrapper, defined in another order than called."""

    def __init__(self):
        super().__init__()
        self.classifier = paddle.nn.Linear(9, 4)
        self.encoder = paddle.nn.Layer()
        self.encoder.second = paddle.nn.Linear(9, 9)
        self.encoder.first = paddle.nn.Linear(7, 9)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 7) -> (B, 4)
        x = F.gelu(self.encoder.first(x))
        return self.classifier(F.gelu(self.encoder.second(x)))


class PaddleParameters(paddle.nn.Layer):
    """The same chain with its last weight as a free parameter in PyTorch's layout (out, in)."""

    def __init__(self):
        super().__init__()
        self.body = paddle.nn.Sequential(paddle.nn.Linear(7, 9), paddle.nn.Linear(9, 9))
        self.out_weight = self.create_parameter([4, 9])
        self.out_bias = self.create_parameter([4], is_bias=True)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:  # (B, 7) -> (B, 4)
        for layer in self.body:
            x = F.gelu(layer(x))
        return paddle.matmul(x, self.out_weight, transpose_y=True) + self.out_bias


class PaddleExtra(PaddleChain):
    """The chain with a layer and a parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        self.pooler = paddle.nn.Linear(9, 3)
        self.mask_token = self.create_parameter([9])


class TorchExtra(TorchChain):
    """The chain with a layer and a parameter that nothing uses."""

    def __init__(self):
        super().__init__()
        self.pooler = torch.nn.Linear(9, 3)
        self.mask_token = torch.nn.Parameter(torch.ones(9))


class TorchWrapped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.module = TorchMlp()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.module(x)


class TorchNamed(torch.nn.Module):
    """A Sequential with named parts and activations that work in place."""

    def __init__(self):
        super().__init__()
        parts = [("a", torch.nn.Linear(7, 9)), ("r", torch.nn.ReLU(inplace=True))]
        parts += [("n", torch.nn.LayerNorm(9)), ("b", torch.nn.Linear(9, 4))]
        self.net = torch.nn.Sequential(OrderedDict(parts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class PaddleFlat(paddle.nn.Layer):
    """The same parts as attributes of the root."""

    def __init__(self):
        super().__init__()
        self.a = paddle.nn.Linear(7, 9)
        self.n = paddle.nn.LayerNorm(9)
        self.b = paddle.nn.Linear(9, 4)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.b(self.n(F.relu(self.a(x))))


class TorchShared(torch.nn.Module):
    """One layer called three times, one of them on what it gave itself."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Linear(7, 9)
        self.again = torch.nn.Linear(9, 9)
        self.alias = self.again

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return torch.tanh(self.again(torch.tanh(self.again(x)))) + self.alias(x)


class PaddleShared(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.stem = paddle.nn.Linear(7, 9)
        self.again = paddle.nn.Linear(9, 9)
        self.alias = self.again

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.stem(x)
        return paddle.tanh(self.again(paddle.tanh(self.again(x)))) + self.alias(x)


class TorchDeep(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(7, 7) for _ in range(48))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + 0.3 * torch.tanh(layer(x))
        return x


class PaddleDeep(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = paddle.nn.LayerList(paddle.nn.Linear(7, 7) for _ in range(48))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        for layer in self.layers:
            x = x + 0.3 * paddle.tanh(layer(x))
        return x


class TorchOutputs(torch.nn.Module):
    """Outputs of several kinds, under names."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(7, 5)

    def forward(self, x: torch.Tensor, shift: torch.Tensor | None = None) -> dict:
        logits = self.fc(x if shift is None else x + shift)
        label = logits.argmax(-1)
        return {"logits": logits, "label": label, "sure": logits > 0, "hidden": None}


class PaddleOutputs(paddle.nn.Layer):
    """The same outputs as a tuple, without the one that is None."""

    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(7, 5)

    def forward(self, x: paddle.Tensor, shift: paddle.Tensor | None = None) -> tuple:
        logits = self.fc(x if shift is None else x + shift)
        return logits, logits.argmax(-1), logits > 0


class TorchBuffers(torch.nn.Module):
    """Buffers, one of which is not in the state dict, and a layer that starts at zero."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(7, 5)
        self.zero = torch.nn.Linear(5, 5)
        torch.nn.init.zeros_(self.zero.weight)
        self.register_buffer("offset", torch.linspace(-1, 1, 5))
        self.register_buffer("mask", torch.tensor([1, 1, 0, 1, 0]), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x) + self.offset
        return self.zero(x) + x * self.mask.to(x.dtype)


class PaddleBuffers(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = paddle.nn.Linear(7, 5)
        self.zero = paddle.nn.Linear(5, 5)
        self.register_buffer("offset", paddle.linspace(-1, 1, 5))
        self.register_buffer("mask", paddle.to_tensor([1, 1, 0, 1, 0]), persistable=False)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.fc(x) + self.offset
        return self.zero(x) + x * self.mask.astype(x.dtype)


class TorchTied(torch.nn.Module):
    """An autoencoder whose decoder is its encoder's weight."""

    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Linear(7, 4)
        self.bias = torch.nn.Parameter(torch.zeros(7))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        code = torch.sigmoid(self.encoder(x))
        return code @ self.encoder.weight + self.bias


class PaddleTied(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder = paddle.nn.Linear(7, 4)
        self.bias = self.create_parameter([7], is_bias=True)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        code = F.sigmoid(self.encoder(x))
        return code @ self.encoder.weight.T + self.bias


def _freeze_stem(torch_model_class):
    def build():
        model = torch_model_class()
        model.stem.requires_grad_(False)
        return model

    return build


class TorchRelu(torch.nn.Module):
    """A ReLU that gives zeros alone, beside a path that lives."""

    def __init__(self):
        super().__init__()
        self.dead = torch.nn.Linear(7, 5)
        torch.nn.init.constant_(self.dead.bias, -50.0)
        self.alive = torch.nn.Linear(7, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.dead(x)) + self.alive(x)


class PaddleRelu(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.dead = paddle.nn.Linear(7, 5)
        self.alive = paddle.nn.Linear(7, 5)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return F.relu(self.dead(x)) + self.alive(x)


SHIFT = {"shift": np.random.default_rng(12).standard_normal((6, 7)).astype("float32")}
CHAIN_TO_PARAMETERS = {"out.weight": "out_weight", "out.bias": "out_bias"}
CHAIN_TO_NESTED = {"body.0": "encoder.first", "body.1": "encoder.second", "out": "classifier"}
NAMED_TO_FLAT = {"net.a": "a", "net.n": "n", "net.b": "b"}
NAMES = {
    "mlp ok: activations as layers": {"body.1": "body.2"},
    "mlp ok: other names, map to be found": CHAIN_TO_NESTED,
    "mlp ok: named Sequential for attributes": NAMED_TO_FLAT,
    "mlp ok: wrapped in one module more": {"module": ""},
}


def _large(x, factor):
    return {"x": x["x"] * np.float32(factor)}


def _right(name, torch_class, paddle_class, inputs=X, **options):
    return case(name, partial(port, torch_class, paddle_class, inputs, **options))


CORRECT = [
    _right("mlp ok", TorchMlp, PaddleMlp),
    _right("mlp ok: fresh", TorchMlp, PaddleMlp, fresh=True),
    _right("mlp ok: positional input", TorchMlp, PaddleMlp, (X["x"],)),
    _right("mlp ok: its own right conversion", TorchMlp, PaddleMlp, damage=lambda model: None),
    _right("mlp ok: large inputs", TorchMlp, PaddleMlp, _large(X, 1e4)),
    _right("mlp ok: tiny inputs", TorchChain, PaddleChain, _large(X, 1e-6),
           name_map={"body.1": "body.2"}),
    _right("mlp ok: activations as layers", TorchChain, PaddleChain),
    _right("mlp ok: other names by a map", TorchChain, PaddleNested, name_map=CHAIN_TO_NESTED),
    _right("mlp ok: other names, map to be found", TorchChain, PaddleNested),
    _right("mlp ok: free parameters for a Linear", TorchChain, PaddleParameters,
           name_map=CHAIN_TO_PARAMETERS),
    _right("mlp ok: unused layer in Paddle", TorchChain, PaddleExtra,
           name_map={"body.1": "body.2"}),
    _right("mlp ok: unused layer in torch", TorchExtra, PaddleChain,
           name_map={"body.1": "body.2"}),
    _right("mlp ok: wrapped in one module more", TorchWrapped, PaddleMlp),
    _right("mlp ok: named Sequential for attributes", TorchNamed, PaddleFlat),
    _right("mlp ok: one layer called three times", TorchShared, PaddleShared),
    _right("mlp ok: 48 layers", TorchDeep, PaddleDeep),
    _right("mlp ok: dict for tuple, integers, booleans, None", TorchOutputs, PaddleOutputs),
    _right("mlp ok: optional input given", TorchOutputs, PaddleOutputs, {**X, **SHIFT}),
    _right("mlp ok: buffers and a zero layer", TorchBuffers, PaddleBuffers, fresh=True),
    _right("mlp ok: tied encoder and decoder", TorchTied, PaddleTied),
    _right("mlp ok: stem frozen on both sides", _freeze_stem(TorchMlp), PaddleMlp,
           change=freeze("stem.weight", "stem.bias")),
    _right("mlp ok: dead ReLU", TorchRelu, PaddleRelu),
]  # fmt: skip

VARIANTS = [
    case("mlp weights: unused layer left as it was drawn", partial(
        port, TorchExtra, PaddleExtra, X, damage=tensor(
            "pooler.weight", lambda w: paddle.ones_like(w) * 0.1), name_map={"body.1": "body.2"}),
        "pooler", "pooler.weight", stages=("weights",)),
    case("mlp: decoder with a weight of its own", partial(
        port, TorchTied, PaddleTied, X, change=forward("", lambda self, x: (
            F.sigmoid(self.encoder(x)) @ self.encoder.weight.T.detach() + self.bias))),
        "", "encoder.weight", stages=("backward",)),
    case("mlp: one of 48 layers a thousandth too large", partial(
        port, TorchDeep, PaddleDeep, X, change=forward("layers.31", lambda self, x: (
            F.linear(x, self.weight, self.bias) * 1.001))), "layers.31"),
    case("mlp: one of 48 layers transposed", partial(
        port, TorchDeep, PaddleDeep, X, damage=tensor("layers.17.weight", lambda w: w.T)),
        "layers.17", "layers.17.weight", stages=("weights",)),
    case("mlp: label by argmin", partial(
        port, TorchOutputs, PaddleOutputs, X, change=forward("", lambda self, x, shift=None: (
            self.fc(x), self.fc(x).argmin(-1), self.fc(x) > 0))), ""),
    case("mlp: buffer off by one step", partial(
        port, TorchBuffers, PaddleBuffers, X, fresh=True,
        damage=tensor("offset", lambda it: paddle.linspace(-1, 0.5, 5))), "offset",
        stages=("weights",)),
    case("mlp: buffer outside the state dict differs", partial(
        port, TorchBuffers, PaddleBuffers, X, change=lambda model: model.mask.set_value(
            paddle.to_tensor([1, 0, 0, 1, 0]))), "mask", ""),
    case("mlp: layer for the shared one", partial(
        port, TorchShared, PaddleShared, X, change=both(
            put("alias", lambda: paddle.nn.Linear(9, 9)),
            lambda model: layer_at(model, "alias").set_state_dict(model.again.state_dict()))),
        "again", "alias", "again.weight", "again.bias", "alias.weight", "alias.bias"),
    case("mlp: live unit for the dead one's sign", partial(
        port, TorchRelu, PaddleRelu, X, change=forward("", lambda self, x: (
            F.relu(self.dead(x)) + F.relu(self.alive(x))))), ""),
]  # fmt: skip

CASES = [*WEIGHTS, *SETTINGS, *FORWARD, *CORRECT, *VARIANTS]
