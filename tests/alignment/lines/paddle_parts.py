"""The port of torch_parts."""

import paddle
from paddle import nn


class Pool(nn.MaxPool1D):
    def __init__(self, kernel_size: int, stride: int) -> None:
        super().__init__(kernel_size, stride)


class Stack(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.first = nn.Linear(d, d)
        self.second = nn.Linear(d, d)

    def forward(self, x: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        y = paddle.tanh(self.first(x))
        return y, paddle.tanh(self.second(y))


class Model(nn.Layer):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(d, 2, 16, 0.0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.stack = Stack(d)
        self.pool = Pool(3, 2)
        self.head = nn.Linear(3, 3)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        mask = paddle.full([x.shape[1], x.shape[1]], -1e4, dtype=x.dtype).triu(1)
        x = self.layers(x, src_mask=mask)
        found = self.stack(x)
        last = found[-1]
        return self.head(self.pool(last))
