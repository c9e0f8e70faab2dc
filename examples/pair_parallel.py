"""A pair for `reprod-align pair --parallel`: one PyTorch process, and a port for tp=2, dp=2 or dp=2,tp=2."""

import numpy as np

V, H, F = 32, 16, 48
_source = np.random.default_rng(0)
inputs = {"ids": _source.integers(0, V, (4, 7)), "labels": _source.integers(0, V, (4, 7))}


def torch_model():
    from torch import nn
    from torch.nn import functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = nn.Embedding(V, H), nn.LayerNorm(H)
            self.up, self.down = nn.Linear(H, F), nn.Linear(F, H)
            self.head = nn.Linear(H, V, bias=False)

        def forward(self, ids, labels):
            x = self.embed(ids)
            x = x + self.down(functional.gelu(self.up(self.norm(x))))
            logits = self.head(x)
            return logits, functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    return Model()


def paddle_model():
    from paddle import nn
    from paddle.distributed import fleet
    from paddle.nn import functional

    mpu = fleet.meta_parallel

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embed, self.norm = mpu.VocabParallelEmbedding(V, H), nn.LayerNorm(H)
            self.up = mpu.ColumnParallelLinear(H, F, has_bias=True, gather_output=False)
            self.down = mpu.RowParallelLinear(F, H, input_is_parallel=True)
            self.head = mpu.ColumnParallelLinear(H, V, has_bias=False, gather_output=False)
            self.loss = mpu.ParallelCrossEntropy()

        def forward(self, ids, labels):
            x = self.embed(ids)
            x = x + self.down(functional.gelu(self.up(self.norm(x))))
            logits = self.head(x)
            return logits, self.loss(logits, labels).mean()

    return fleet.distributed_model(Model())


def torch_loss(output):
    return output[1]


def paddle_loss(output):
    return output[1]


def torch_optimizer(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def paddle_optimizer(model):
    import paddle
    from paddle.distributed import fleet

    made = paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), weight_decay=0.01)
    return fleet.distributed_optimizer(made)
