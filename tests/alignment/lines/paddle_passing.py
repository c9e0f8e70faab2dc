"""A block that passes values on through functions of its own, a convolution and a module of two inputs."""

import paddle
from paddle import nn


class Mix(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, hidden: paddle.Tensor, before: paddle.Tensor) -> paddle.Tensor:
        return self.norm(self.dense(hidden) + before)


class Encoder(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        before = self.drop(x)
        after = self.dense(before)
        return self.norm(after)


class Model(nn.Layer):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.mix = Mix(d)
        self.inner = nn.LayerNorm(d)
        self.conv = nn.Conv1D(d, d, 3, padding=1)
        self.encoder = Encoder(d)
        self.head = nn.Linear(d, 3)

    def split(self, x: paddle.Tensor) -> paddle.Tensor:
        return x.reshape([x.shape[0], x.shape[1], 2, -1]).transpose([0, 2, 1, 3])

    def feed_forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.tanh(self.conv(x.transpose([0, 2, 1]))).transpose([0, 2, 1])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        first = self.query(x)
        second = self.key(x)
        third = self.value(x)
        query, key, value = self.split(first), self.split(second), self.split(third)
        shares = nn.functional.softmax(query @ key.transpose([0, 1, 3, 2]), -1)
        attended = (shares @ value).transpose([0, 2, 1, 3]).reshape(x.shape)
        mixed = self.mix(attended, x)
        mixed = self.inner(mixed + attended)
        return self.head(self.encoder(mixed + self.feed_forward(mixed)))
