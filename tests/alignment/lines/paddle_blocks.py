"""The faithful port of `torch_blocks`; the tests change one line of it at a time."""

import paddle
import paddle.nn.functional as F
from paddle import nn


class Gate(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.gate = nn.Linear(d, d)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x * F.sigmoid(self.gate(x))


class Convolution(nn.Layer):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.conv = nn.Conv1D(d, d, 3, padding=1, data_format="NLC")

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.conv(x)


class Head(nn.Layer):
    def __init__(
        self,
        d: int,
        classes: int,
        eps: float = 1e-6,
        dropout: float = 0.1,
        act: str = "gelu",
        mix: str = "gate",
    ) -> None:
        super().__init__()
        if mix == "gate":
            self.mix: nn.Layer = Gate(d)
        else:
            self.mix = Convolution(d)
        self.norm = nn.LayerNorm(d, epsilon=eps)
        self.dropout = nn.Dropout(dropout)
        self.act = getattr(F, act)
        self.dense = nn.Linear(d, classes)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.dense(self.dropout(self.act(self.norm(self.mix(x)))))


class Model(nn.Layer):
    def __init__(self, d: int = 8, classes: int = 3) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            d_model=d,
            nhead=2,
            dim_feedforward=2 * d,
            dropout=0.1,
            activation="gelu",
            attn_dropout=0.2,
            act_dropout=0.0,
            normalize_before=True,
        )
        self.layers = nn.TransformerEncoder(layer, 2)
        self.q = nn.Linear(d, d)
        self.k = nn.Linear(d, d)
        self.v = nn.Linear(d, d)
        self.head = Head(
            d,
            classes,
            dropout=0.3,
            act="gelu",
            mix="gate",
        )

    def forward(self, x: paddle.Tensor) -> tuple[paddle.Tensor, paddle.Tensor]:
        x = self.layers(x)
        q, k, v = self.q(x), self.k(x), self.v(x)
        y = self.head(q * F.sigmoid(k) + paddle.tanh(v)).mean(1)
        return y @ y.t(), y.t() @ y
