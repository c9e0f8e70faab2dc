"""A small PyTorch model and its Paddle port, for `reprod-align pair examples/pair_mlp.py`.

With FAULTY=1 in the environment, the port makes three mistakes that real ports make.
"""

import os

import numpy as np

FAULTY = bool(os.environ.get("FAULTY"))


def torch_model():
    """Return the reference."""
    import torch
    from torch import nn

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.norm = nn.LayerNorm(8, eps=1e-12)
            self.dense = nn.Linear(8, 16)
            self.dropout = nn.Dropout(0.1)
            self.out = nn.Linear(16, 3)

        def forward(self, ids, mask):
            words = self.norm(self.embed(ids))  # (B, L, 8)
            mean = (words * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)  # (B, 8)
            return self.out(self.dropout(torch.tanh(self.dense(mean))))  # (B, 3)

    torch.manual_seed(0)
    return Classifier()


def paddle_model():
    """Return its port."""
    import paddle
    from paddle import nn

    class Classifier(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8)
            self.norm = nn.LayerNorm(8, epsilon=1e-5 if FAULTY else 1e-12)  # 1e-5 is the default
            self.dense = nn.Linear(8, 16)
            self.dropout = nn.Dropout(0.1)
            self.out = nn.Linear(16, 3)

        def forward(self, ids, mask):
            words = self.norm(self.embed(ids))  # (B, L, 8)
            if FAULTY:
                mean = words.mean(1)  # counts the padding
            else:
                mean = (words * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)  # (B, 8)
            return self.out(self.dropout(paddle.tanh(self.dense(mean))))  # (B, 3)

    return Classifier()


def inputs():
    """Return token ids (4, 6) and the mask of what is not padding, (4, 6)."""
    ids = np.random.default_rng(0).integers(0, 20, (4, 6))
    mask = np.arange(6) < np.array([[6], [4], [5], [2]])  # four sentences, three of them padded
    return {"ids": ids * mask, "mask": mask.astype("float64")}


def torch_loss(output):
    """Return the loss of logits (4, 3)."""
    import torch

    return torch.nn.functional.cross_entropy(output, torch.tensor([0, 2, 1, 1]))


def paddle_loss(output):
    """Return the loss of logits (4, 3)."""
    import paddle

    return paddle.nn.functional.cross_entropy(output, paddle.to_tensor([0, 2, 1, 1]))


def torch_optimizer(model):
    """Return AdamW."""
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def paddle_optimizer(model):
    """Return AdamW; Adam in the faulty port."""
    import paddle

    kind = paddle.optimizer.Adam if FAULTY else paddle.optimizer.AdamW  # Adam: L2, not decoupled
    return kind(1e-3, parameters=model.parameters(), weight_decay=0.01)
