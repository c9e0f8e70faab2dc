"""The ports of `torch_far`, with mistakes to choose."""

import paddle

HEADS = 2


class PaddlePositions(paddle.nn.Embedding):
    """Counts the positions that it embeds."""

    def forward(self, mask):
        positions = paddle.cumsum(mask.cast("int64"), 1) * mask
        return paddle.nn.Embedding.forward(self, positions + 2)


class PaddleCounted(paddle.nn.Embedding):
    """Counts padding too."""

    def forward(self, mask):
        positions = paddle.cumsum(mask.cast("int64"), 1)
        return paddle.nn.Embedding.forward(self, positions + 2)


class PaddlePlaced(paddle.nn.Layer):
    def __init__(self, places: type) -> None:
        super().__init__()
        self.places, self.out = places(14, 8), paddle.nn.Linear(8, 3)

    def forward(self, x, mask):
        return self.out(x + self.places(mask))


class PaddleAttention(paddle.nn.Layer):
    """Merges batch and heads."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)
        self.value, self.last = paddle.nn.Linear(8, 8), paddle.nn.Linear(8, 8)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], HEADS, 4]).transpose([0, 2, 1, 3])

    def forward(self, x, mask):
        batch, length = x.shape[:2]
        query = self.split(self.query(x)).reshape([batch * HEADS, -1, 4]) / 2
        key = self.split(self.key(x)).reshape([batch * HEADS, -1, 4])
        value = self.split(self.value(x)).reshape([batch * HEADS, -1, 4])
        scores = paddle.bmm(query, key.transpose([0, 2, 1]))
        scores = scores + mask
        mixed = paddle.bmm(paddle.nn.functional.softmax(scores, -1), value)
        mixed = mixed.reshape([batch, HEADS, length, 4]).transpose([0, 2, 1, 3])
        return self.last(mixed.reshape([batch, length, 8]))


class PaddleHeads(paddle.nn.Layer):
    def __init__(self, tiled: bool) -> None:
        super().__init__()
        self.first, self.attention = paddle.nn.Linear(8, 8), PaddleAttention()
        self.out, self.tiled = paddle.nn.Linear(8, 3), tiled

    def forward(self, x, mask):
        hidden = (1.0 - mask.unsqueeze(1)) * -1e4
        if self.tiled:
            hidden = paddle.tile(hidden, [HEADS, 1, 1])
        else:
            hidden = paddle.repeat_interleave(hidden, HEADS, axis=0)
        return self.out(self.attention(self.first(x), hidden.cast(x.dtype)))
