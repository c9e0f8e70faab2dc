"""The same encoder, its attention written out."""

import paddle
from paddle import nn


class Attention(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.factor = 0.5
        self.drop = nn.Dropout(0.0)

    def split(self, x: paddle.Tensor) -> paddle.Tensor:
        return x.reshape([x.shape[0], x.shape[1], 2, -1]).transpose([0, 2, 1, 3])

    def forward(
        self, x: paddle.Tensor, mask: paddle.Tensor, position_bias: paddle.Tensor | None = None
    ) -> paddle.Tensor:
        query, key, value = (
            self.split(self.query(x)),
            self.split(self.key(x)),
            self.split(self.value(x)),
        )
        scores = paddle.matmul(query, key, transpose_y=True) * self.factor
        if position_bias is not None:
            scores = scores + position_bias
        scores = scores + mask
        shares = nn.functional.softmax(scores, -1)
        shares = nn.functional.dropout(shares, 0.0, training=self.training)
        y = paddle.matmul(shares, value)
        return self.drop(self.out(y.transpose([0, 2, 1, 3]).reshape(x.shape)))


class Layer(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.attention, self.norm = Attention(d), nn.LayerNorm(d)
        self.dense = nn.Linear(d // 2, d // 2)

    def forward(
        self, x: paddle.Tensor, mask: paddle.Tensor, position_bias: paddle.Tensor | None = None
    ) -> paddle.Tensor:
        attended = self.attention(x, mask=mask, position_bias=position_bias)
        x = self.norm(x + attended)
        first, second = paddle.chunk(x, 2, axis=-1)
        second = self.dense(second)
        return paddle.concat([first, second], axis=-1)


class Gate(nn.Layer):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x * nn.functional.sigmoid(x)


def make_waves(rows: int, d: int) -> paddle.Tensor:
    steps = paddle.arange(float(rows)).unsqueeze(1) / 10000 ** (paddle.arange(0.0, d, 2) / d)
    return paddle.concat([paddle.sin(steps), paddle.cos(steps)], axis=-1)


class Waves(nn.Layer):
    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = make_waves(rows, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x + self.table[: x.shape[1]]


class Model(nn.Layer):
    def __init__(self, d: int = 8) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (
            nn.Embedding(20, d),
            nn.Embedding(9, d),
            nn.Embedding(2, d),
        )
        self.layers = nn.LayerList(Layer(d) for _ in range(2))
        self.bias = nn.Embedding(9, 2)
        self.gate = Gate() if d > 4 else None
        width = d
        self.waves = Waves(9, width)
        self.table = (paddle.arange(72.0) / 64).reshape([9, 8])

    def forward(self, ids: paddle.Tensor, mask: paddle.Tensor | None = None) -> paddle.Tensor:
        if mask is None:
            mask = (ids != 0).astype("int64")
        ones = paddle.ones_like(ids)
        lengths = paddle.cumsum(ones, axis=-1)
        places = lengths - ones
        kinds = paddle.zeros_like(ids)
        x = self.words(ids) + self.places(places) + self.kinds(kinds)
        x = self.waves(x + self.table[: ids.shape[1]])
        mask = mask.unsqueeze([1, 2]).astype(x.dtype)
        hidden = (1.0 - mask) * -1e4
        steps = paddle.arange(ids.shape[1])
        position_bias = (
            self.bias((steps.unsqueeze(1) - steps).abs()).transpose([2, 0, 1]).unsqueeze(0)
        )
        for layer in self.layers:
            x = layer(x, hidden, position_bias)
        if self.gate is not None:
            x = self.gate(x)
        return x
