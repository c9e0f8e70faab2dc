"""A model that computes its loss itself, as those of transformers do when they are given labels."""

import torch
from torch import nn


def dropout_add(x: torch.Tensor, residual: torch.Tensor, p: float) -> torch.Tensor:
    x = nn.functional.dropout(x, p, training=False)
    return residual + x


class Tagger(nn.Module):
    def __init__(self, d: int = 8, classes: int = 11) -> None:
        super().__init__()
        self.words = nn.Embedding(classes, d)
        self.mix = nn.ModuleList([nn.Linear(d, d) for _ in range(2)])
        self.head = nn.Linear(d, classes)

    def forward(
        self, input_ids: torch.Tensor, labels: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.words(input_ids)
        for layer in self.mix:
            x = dropout_add(torch.tanh(layer(x)), x, 0.1)
        logits = self.head(x)
        scores = logits[:, :-1].reshape(-1, logits.shape[-1])
        targets = labels[:, 1:].reshape(-1)
        measure = nn.CrossEntropyLoss()
        loss = measure(scores, targets)
        return loss, logits
