"""Idioms of models that no other family has, each with the bug by which they were found wanting."""

from functools import partial
from typing import Any

from tests.pairs.case import Case, Pair, case
from tests.pairs.plant import port

import numpy as np
import paddle
import torch
from paddle import nn as pn
from paddle.nn import functional as P
from torch import nn as tn
from torch.nn import functional as T

_rng = np.random.default_rng(83)
X = {"x": _rng.standard_normal((4, 6)).astype("float32")}
WAVE = {"x": _rng.standard_normal((3, 4, 8)).astype("float32")}
STEPS = {**X, "t": np.array([3, 7, 1, 5])}


# A list of modules, never called itself, against attributes


class TorchBlock(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.out = tn.LayerNorm(6), tn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.out(torch.tanh(self.norm(x)))


class TorchListed(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mid = tn.ModuleList([tn.Linear(6, 6), TorchBlock()])
        self.head = tn.Linear(6, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.mid[1](self.mid[0](x)))


class PaddleBlock(pn.Layer):
    def __init__(self, residual: bool) -> None:
        super().__init__()
        self.norm, self.out, self.residual = pn.LayerNorm(6), pn.Linear(6, 6), residual

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        made = self.out(paddle.tanh(self.norm(x)))
        return x + made if self.residual else made


class PaddleListed(pn.Layer):
    def __init__(self, residual: bool = True) -> None:
        super().__init__()
        self.mid_in, self.mid_block, self.head = (
            pn.Linear(6, 6), PaddleBlock(residual), pn.Linear(6, 2),
        )  # fmt: skip

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.head(self.mid_block(self.mid_in(x)))


# Two losses, one of them on detached samples


class TorchGan(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = tn.Sequential(tn.Linear(6, 5), tn.Tanh())
        self.critic = tn.Sequential(tn.Sequential(tn.Linear(5, 4), tn.ReLU()), tn.Linear(4, 1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        fake = self.generator(x)
        return {"critic": self.critic(fake.detach()).mean(), "generator": -self.critic(fake).mean()}


class PaddleCritic(pn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = pn.Linear(5, 4), pn.Linear(4, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.last(P.relu(self.first(x)))


class PaddleGan(pn.Layer):
    def __init__(self, detach: bool = True) -> None:
        super().__init__()
        self.generator, self.critic, self.detach = pn.Linear(6, 5), PaddleCritic(), detach

    def forward(self, x: paddle.Tensor) -> dict[str, paddle.Tensor]:
        fake = paddle.tanh(self.generator(x))
        judged = self.critic(fake.detach() if self.detach else fake)
        return {"critic": judged.mean(), "generator": -self.critic(fake).mean()}


# A variational autoencoder: noise in train mode alone


class TorchEncoder(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread = tn.Linear(6, 3), tn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.mean(x), self.spread(x)


class TorchVae(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = TorchEncoder(), tn.Linear(3, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean, spread = self.encoder(x)
        noise = torch.randn_like(mean) * (spread / 2).exp() if self.training else 0
        return self.decoder(mean + noise), mean.square().sum() + spread.exp().sum() - spread.sum()


class PaddleVae(pn.Layer):
    def __init__(self, detached: bool = False, always: bool = False) -> None:
        super().__init__()
        self.mean, self.spread, self.decoder = pn.Linear(6, 3), pn.Linear(6, 3), pn.Linear(3, 6)
        self.detached, self.always = detached, always

    def forward(self, x: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        mean, spread = self.mean(x), self.spread(x)
        noisy = self.training or self.always
        noise = paddle.randn(mean.shape, mean.dtype) * (spread / 2).exp() if noisy else 0
        size = (mean.detach() if self.detached else mean).square().sum()
        return self.decoder(mean + noise), size + spread.exp().sum() - spread.sum()


# A table of sines, made from an input, that a Sequential hands on


class TorchTimed(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = tn.Sequential(tn.Linear(8, 6), tn.SiLU(), tn.Linear(6, 6))
        self.head = tn.Linear(6, 2)

    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        angles = t[:, None].to(x.dtype) / 10 ** torch.arange(4, dtype=x.dtype)
        return self.head(x + self.time(torch.cat([angles.cos(), angles.sin()], -1)))


class PaddleTimed(pn.Layer):
    def __init__(self, sines_first: bool = False) -> None:
        super().__init__()
        self.time_in, self.time_out, self.head = pn.Linear(8, 6), pn.Linear(6, 6), pn.Linear(6, 2)
        self.sines_first = sines_first

    def forward(self, x: paddle.Tensor, t: paddle.Tensor) -> paddle.Tensor:
        angles = t.unsqueeze(1).astype(x.dtype) / 10 ** paddle.arange(4).astype(x.dtype)
        parts = [angles.cos(), angles.sin()]
        table = paddle.concat(parts[::-1] if self.sines_first else parts, -1)
        return self.head(x + self.time_out(P.silu(self.time_in(table))))


# weight_norm, which torch holds in modules of its own; padding before the convolution or in it


class TorchCausal(tn.Module):
    def __init__(self, wide: int) -> None:
        super().__init__()
        layer = tn.Conv1d(4, 4, 2, padding=wide, dilation=wide)
        self.conv, self.wide = tn.utils.parametrizations.weight_norm(layer), wide

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return T.relu(x + self.conv(x)[..., : -self.wide])


class TorchTcn(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.network = tn.Sequential(TorchCausal(1), TorchCausal(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.network(x).mean(-1)


class PaddleCausal(pn.Layer):
    def __init__(self, wide: int, residual: bool) -> None:
        super().__init__()
        self.conv = pn.utils.weight_norm(pn.Conv1D(4, 4, 2, dilation=wide))
        self.wide, self.residual = wide, residual

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        made = self.conv(P.pad(x, [self.wide, 0], data_format="NCL"))
        return P.relu(x + made if self.residual else made)


class PaddleTcn(pn.Layer):
    def __init__(self, residual: bool = True) -> None:
        super().__init__()
        self.block0, self.block1 = PaddleCausal(1, True), PaddleCausal(2, residual)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.block1(self.block0(x)).mean(-1)


# Experts that see some rows here and all rows there


class TorchExperts(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.experts = tn.Linear(6, 2), tn.ModuleList([tn.Linear(6, 3) for _ in "ab"])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, chosen = self.gate(x).softmax(-1).max(-1)
        made = torch.zeros(len(x), 3, dtype=x.dtype)
        for number, expert in enumerate(self.experts):
            rows = torch.where(chosen == number)[0]
            if len(rows):
                made = made.index_add(0, rows, expert(x[rows]).tanh())
        return made * weight[:, None]


class PaddleExperts(pn.Layer):
    def __init__(self, function: Any = paddle.tanh) -> None:
        super().__init__()
        self.gate, self.experts = pn.Linear(6, 2), pn.LayerList([pn.Linear(6, 3) for _ in "ab"])
        self.function = function

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        shares = P.softmax(self.gate(x))
        chosen = P.one_hot(shares.argmax(-1), 2).astype(x.dtype) * shares
        made = [self.function(e(x)) * chosen[:, i : i + 1] for i, e in enumerate(self.experts)]
        return paddle.add_n(made)


# Rates by groups: Paddle's are factors of one rate, which none of them need have


class TorchTwo(tn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = tn.Linear(6, 5), tn.Linear(5, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.body(x)))


class PaddleTwo(pn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = pn.Linear(6, 5), pn.Linear(5, 2)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.head(paddle.tanh(self.body(x)))


def _mean_square(output: Any) -> Any:
    return output.square().mean()


def _torch_groups(model: TorchTwo) -> torch.optim.Optimizer:
    groups = [{"params": model.head.parameters(), "lr": 0.03}, {"params": model.body.parameters()}]
    return torch.optim.SGD(groups, lr=0.001)


def _paddle_groups(model: PaddleTwo, base: float, head: float, body: float) -> Any:
    groups = [
        {"params": model.body.parameters(), "learning_rate": body},
        {"params": model.head.parameters(), "learning_rate": head},
    ]
    return paddle.optimizer.SGD(base, parameters=groups)


def _pair(torch_class: Any, paddle_class: Any, inputs: Any, **given: Any) -> Pair:
    return port(torch_class, partial(paddle_class, **given), inputs)


def _rates(base: float, head: float, body: float = 1.0) -> Pair:
    return port(
        TorchTwo, PaddleTwo, X, torch_loss=_mean_square, paddle_loss=_mean_square,
        torch_optimizer=_torch_groups,
        paddle_optimizer=partial(_paddle_groups, base=base, head=head, body=body),
    )  # fmt: skip


_listed = partial(_pair, TorchListed, PaddleListed, X)
_gan = partial(_pair, TorchGan, PaddleGan, X)
_vae = partial(_pair, TorchVae, PaddleVae, X)
_timed = partial(_pair, TorchTimed, PaddleTimed, STEPS)
_tcn = partial(_pair, TorchTcn, PaddleTcn, WAVE)
_experts = partial(_pair, TorchExperts, PaddleExperts, X)

CASES: list[Case] = [
    case("listed ok", _listed),
    case("gan ok", _gan),
    case("vae ok", _vae),
    case("timed ok", _timed),
    case("tcn ok", _tcn),
    case("experts ok", _experts),
    case("rates ok: factors of the last group's", partial(_rates, 0.001, 30.0)),
    case("rates ok: factors of no group's", partial(_rates, 1.0, 0.03, 0.001)),
    case("listed: residual left out", partial(_listed, residual=False), "mid.1", words=("input",)),
    case("gan: not detached", partial(_gan, detach=False), "", stages=("backward",)),
    case("vae: mean without gradient", partial(_vae, detached=True), "", stages=("backward",)),
    case("vae: noise in eval mode too", partial(_vae, always=True), "",
         words=("paddle draws random numbers", "shape (4, 3)")),
    case("timed: sines first", partial(_timed, sines_first=True), "",
         words=("another constant or input",)),
    case("tcn: residual left out", partial(_tcn, residual=False), "block1"),
    case("experts: another function", partial(_experts, function=P.relu), "",
         words=("experts.0", "not comparable")),
    case("rates: absolute for a factor", partial(_rates, 0.001, 0.03), "head.weight", "head.bias",
         stages=("optimizer",), words=("lr: 0.03",)),
]  # fmt: skip
