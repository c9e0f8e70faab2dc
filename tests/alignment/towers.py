"""Towers of blocks whose norms stand in the block before or after, beside a residual."""

from typing import Any

import paddle
import torch

WIDTH = 6


class TorchPost(torch.nn.Module):
    """A block that ends with its norm, which belongs to what it makes."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = torch.nn.Linear(WIDTH, 9), torch.nn.Linear(9, WIDTH)
        self.after, self.drop = torch.nn.LayerNorm(WIDTH), torch.nn.Dropout(0.4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.after(x + self.drop(self.fc2(torch.nn.functional.gelu(self.fc1(x)))))


class TorchPostTower(torch.nn.Module):
    """Blocks after a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.outer = torch.nn.LayerNorm(WIDTH)
        self.blocks = torch.nn.ModuleList(TorchPost() for _ in range(3))
        self.head = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.outer(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class PaddlePost(paddle.nn.Layer):
    """The same block, which begins with the norm of the one before."""

    def __init__(self, eps: float, act: Any) -> None:
        super().__init__()
        self.before, self.act = paddle.nn.LayerNorm(WIDTH, epsilon=eps), act
        self.fc1, self.fc2 = paddle.nn.Linear(WIDTH, 9), paddle.nn.Linear(9, WIDTH)
        self.drop = paddle.nn.Dropout(0.4)

    def forward(self, x: Any) -> Any:
        x = self.before(x)
        return x + self.drop(self.fc2(self.act(self.fc1(x))))


class PaddlePostTower(paddle.nn.Layer):
    """The same, with that norm in the first block, and the last block's behind it."""

    def __init__(self, made: Any, lost: Any) -> None:
        super().__init__()
        self.blocks = paddle.nn.LayerList(made(PaddlePost, number) for number in range(3))
        self.other, self.lost = paddle.nn.LayerNorm(WIDTH), lost
        self.head = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(self.lost(self.other(x)))


class TorchPre(torch.nn.Module):
    """A block that begins with its norm."""

    def __init__(self) -> None:
        super().__init__()
        self.pre, self.drop = torch.nn.LayerNorm(WIDTH), torch.nn.Dropout(0.4)
        self.fc1, self.fc2 = torch.nn.Linear(WIDTH, 9), torch.nn.Linear(9, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.drop(self.fc2(torch.nn.functional.gelu(self.fc1(self.pre(x)))))


class TorchPreTower(TorchPostTower):
    """Blocks before a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(TorchPre() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(self.outer(x))


class PaddlePre(PaddlePost):
    """The same block, which ends with the norm of the next one."""

    def forward(self, x: Any, normed: Any) -> Any:
        x = x + self.drop(self.fc2(self.act(self.fc1(normed))))
        return x, self.before(x)


class PaddlePreTower(PaddlePostTower):
    """The same, with that norm in the last block, and the first block's before it."""

    def __init__(self, made: Any, lost: Any) -> None:
        super().__init__(made, lost)
        self.blocks = paddle.nn.LayerList(made(PaddlePre, number) for number in range(3))

    def forward(self, x: Any) -> Any:
        normed = self.other(x)
        for block in self.blocks:
            x, normed = block(x, normed)
        return self.head(self.lost(normed))
