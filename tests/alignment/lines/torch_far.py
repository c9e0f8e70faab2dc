"""PyTorch's models of `test_far_masks`; `paddle_far` holds the ports."""

import torch

HEADS = 2


class TorchPositions(torch.nn.Embedding):
    """Embeds positions that its caller may have counted."""

    def forward(self, mask, positions=None):
        positions = torch.cumsum(mask, 1) * mask if positions is None else positions
        return super().forward(positions + 2)


class TorchPlaced(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places, self.out = TorchPositions(14, 8), torch.nn.Linear(8, 3)

    def forward(self, x, mask):
        positions = torch.cumsum(mask, 1) * mask
        return self.out(x + self.places(mask, positions))


class TorchAttention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.value, self.last = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], HEADS, 4).transpose(1, 2)

    def forward(self, x, mask):
        query, key, value = (self.split(one(x)) for one in (self.query, self.key, self.value))
        scores = torch.einsum("bhsk,bhtk->bhst", query, key) / 2 + mask
        mixed = torch.einsum("bhst,bhtk->bhsk", torch.softmax(scores, -1), value)
        return self.last(mixed.transpose(1, 2).reshape(x.shape))


class TorchHeads(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.attention = torch.nn.Linear(8, 8), TorchAttention()
        self.out = torch.nn.Linear(8, 3)

    def forward(self, x, mask):
        hidden = (1.0 - mask[:, None, None, :].repeat(1, HEADS, 1, 1).to(x.dtype)) * -1e4
        return self.out(self.attention(self.first(x), hidden))
