"""The same decoder: a mask that a function makes is handed down, each attention makes its own table."""

import paddle
from paddle import nn
from paddle.nn import functional as F


def turn(x: paddle.Tensor) -> paddle.Tensor:
    first, second = x.chunk(2, -1)
    return paddle.concat([-second, first], -1)


def make_mask(length: int) -> paddle.Tensor:
    mask = paddle.full([length, length], -1e9, dtype="float64")
    places = paddle.arange(length)
    seen = places < (places + 1).reshape([length, 1])
    mask = paddle.where(seen, paddle.zeros([length, length], dtype="float64"), mask)
    return mask.unsqueeze(0).unsqueeze(0)


class Rotary(nn.Layer):
    def forward(self, q: paddle.Tensor, k: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        places = paddle.arange(q.shape[2]).astype("float64")
        angles = paddle.outer(places, paddle.to_tensor([1.0, 0.1], dtype="float64"))
        angles = paddle.concat([angles, angles], -1).astype(q.dtype)
        cos, sin = angles.cos(), angles.sin()
        return (q * cos) + (turn(q) * sin), (k * cos) + (turn(k) * sin)


class Attention(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.out = nn.Linear(d, d)
        self.rotary = Rotary()

    def split(self, x: paddle.Tensor) -> paddle.Tensor:
        return x.reshape([x.shape[0], x.shape[1], -1, 4]).transpose([0, 2, 1, 3])

    def project(self, key: paddle.Tensor, value: paddle.Tensor) -> list[paddle.Tensor]:
        return [self.split(self.key(key)), self.split(self.value(value))]

    def forward(
        self, query: paddle.Tensor, key: paddle.Tensor, value: paddle.Tensor, mask: paddle.Tensor
    ) -> paddle.Tensor:
        shape = query.shape
        made = self.query(query)
        q = self.split(made)
        k, v = self.project(key, value)
        q, k = self.rotary(q, k)
        scores = paddle.matmul(q * 4**-0.5, k, transpose_y=True)
        scores = scores + mask.astype(q.dtype)
        mixed = paddle.matmul(F.softmax(scores, -1), v)
        return self.out(mixed.transpose([0, 2, 1, 3]).reshape(shape))


class Layer(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.norm, self.attention, self.after = nn.LayerNorm(d), Attention(d), nn.LayerNorm(d)

    def forward(self, x: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        before = x
        x = self.norm(x)
        x = self.attention(x, x, x, mask)
        return self.after(before + x)


class Model(nn.Layer):
    def __init__(self, d: int = 8, scaled: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(20, d)
        self.factor = 2.0 if scaled else 1.0
        self.first, self.second = Layer(d), Layer(d)
        self.pooler = nn.Linear(d, d)
        self.shown = paddle.tril(paddle.ones([64, 64]))

    def forward(self, ids: paddle.Tensor) -> dict[str, paddle.Tensor]:
        length = ids.shape[1]
        mask = make_mask(length)
        shown = self.shown[:length, :length]
        x = self.words(ids) * self.factor
        x = self.second(self.first(x, mask), (1.0 - shown) * -1e9)
        pooled = self.pooler(x[:, 0]) if self.pooler is not None else None
        return {"hidden": x, "pooled": pooled} if pooled is not None else {"hidden": x}
