"""The same network in Paddle."""

import math

import paddle
from paddle import nn


def choose(name: str) -> type[nn.Layer]:
    if name == "swish":
        return nn.Swish
    if name == "relu":
        return nn.ReLU
    raise ValueError(name)


class Block(nn.Layer):
    def __init__(self, width: int, stride: int, act: type[nn.Layer], skip: nn.Layer) -> None:
        super().__init__()
        self.conv = nn.Conv2D(width, width, 3, stride=stride, padding=1)
        self.act, self.more = (
            act(),
            nn.Conv2D(width, width, 1),
        )
        self.skip = skip

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.conv(x)
        h = self.act(x).scale(2.0)
        h = self.more(h)
        return (self.skip(x) + h) / math.sqrt(2)


class Pooler(nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        first = x[:, 0]
        return paddle.tanh(self.dense(first))


class Net(nn.Layer):
    def __init__(self, stem: nn.Layer, width: int = 8, act: str = "relu") -> None:
        super().__init__()
        self.stem = stem
        self.blocks = self._make_blocks(width, act)
        self.pooler = Pooler(width)

    def _make_blocks(self, width: int, act: str) -> nn.Layer:
        made: list[nn.Layer] = []
        kind = Block
        for i, stride in enumerate((2, 2)):
            step = 1 if i else stride
            skip = nn.Conv2D(width, width, 1)
            made.append(
                kind(
                    width,
                    step,
                    act=choose(act),
                    skip=skip,
                )
            )
        return nn.Sequential(*made)

    def forward(self, x: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        x = self.blocks(self.stem(x)).flatten(2).transpose([0, 2, 1])
        return x, self.pooler(x)


def make_stem(norm: bool = False) -> nn.Layer:
    layers = [nn.Conv2D(3, 8, 3, padding=1)]
    if norm:
        layers += [nn.BatchNorm2D(8)]
    layers += [nn.MaxPool2D(kernel_size=2, stride=2)]
    return nn.Sequential(*layers)


def make_model() -> Net:
    return Net(make_stem())
