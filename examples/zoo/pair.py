"""A pair of the zoo: two packages' models of one kind, and a batch for both.

A pair is stated once, in a table; tests, mutants and the command build it from there. Nothing says
which weight belongs to which: `align` finds that out.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

Batch = Mapping[str, np.ndarray] | tuple[np.ndarray, ...]
Maker = Callable[[Any], Any]
"""from the package (any object with its classes as attributes) to the model"""
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """Two models and one batch."""

    name: str
    torch: Maker
    paddle: Maker
    batch: Callable[[], Batch]

    def make(self, ours: Any, theirs: Any) -> tuple[Any, Any, Batch]:
        """Return PyTorch's model, its weights moved, Paddle's model and the batch."""
        first, second = self.make_torch(ours), self.make_paddle(theirs)
        return first, second, self.batch()

    def make_torch(self, package: Any) -> Any:
        """Return PyTorch's model; all its weights, biases too, are moved away from their constants."""
        import torch

        torch.manual_seed(0)
        return move_weights(self.torch(package))

    def make_paddle(self, package: Any) -> Any:
        """Return Paddle's model."""
        import paddle

        paddle.seed(0)
        return self.paddle(package)

    def given(self, **batch: np.ndarray) -> "Pair":
        """Return the pair with another batch."""
        return replace(self, batch=lambda: batch)

    def mended(self, mend: Callable[[Any], None]) -> "Pair":
        """Return the pair with Paddle's model changed in place by `mend`."""

        def paddle(package: Any) -> Any:
            model = self.paddle(package)
            mend(model)
            return model

        return replace(self, paddle=paddle)


@dataclass(frozen=True)
class Architecture:
    """A model that both packages have: how it is configured there, and its heads."""

    name: str
    torch: str
    """what PyTorch's class names begin with; Paddle's as well, unless `paddle` says otherwise"""
    heads: str
    """what they end with, separated by blanks; "ForMaskedLM=Generator" where Paddle's is another"""
    settings: Settings
    """of both configurations"""
    paddle: str = ""
    torch_only: Settings = field(default_factory=dict)
    paddle_only: Settings = field(default_factory=dict)
    batch: Callable[[str], Batch] | None = None
    """from the head to its batch; None: padded token ids"""

    def pairs(self) -> Iterator[Pair]:
        """Yield a pair for each head."""
        for head in self.heads.split():
            yield self.pair(head)

    def pair(self, head: str) -> Pair:
        """Return the pair of one head."""
        ours, _, theirs = head.partition("=")
        batch = self.batch or make_batch
        further = {"num_choices": 2} if ours == "ForMultipleChoice" else {}
        port = {**self.settings, **self.paddle_only, **further}
        return Pair(
            f"{self.name} {ours}",
            _make(self.torch, ours, {**self.settings, **self.torch_only}),
            _make(self.paddle or self.torch, theirs or ours, port),
            lambda: batch(ours),
        )


def _make(prefix: str, head: str, settings: Settings) -> Maker:
    def make(package: Any) -> Any:
        config = getattr(package, f"{prefix}Config")(**settings)
        return getattr(package, f"{prefix}{head}")(config)

    return make


def move_weights(model: Any) -> Any:
    """Move all weights of a PyTorch model, biases too, away from their constants; return the model."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                spread = 0.1 if parameter.dim() < 2 else 0.02
                parameter += torch.randn_like(parameter) * spread
    return model


def tokens(length: int = 10, seed: int = 0) -> np.ndarray:
    """Return token ids (2, length) int64 in 3..98."""
    return np.random.default_rng(seed).integers(3, 99, size=(2, length))


def padded(head: str = "") -> dict[str, np.ndarray]:
    """Return token ids (2, 10) and a mask that hides the last three of the second row."""
    mask = np.ones((2, 10), "int64")
    mask[-1, -3:] = 0
    return {"input_ids": tokens(), "attention_mask": mask}


def make_batch(head: str) -> dict[str, np.ndarray]:
    """Return padded token ids, with two choices for each example where the head is one of choices."""
    batch = padded()
    if head == "ForMultipleChoice":
        return {name: np.stack([part, part[::-1]], 1) for name, part in batch.items()}
    return batch


def unmasked(head: str) -> dict[str, np.ndarray]:
    """Return token ids alone."""
    return {"input_ids": make_batch(head)["input_ids"]}


def sequences(head: str) -> dict[str, np.ndarray]:
    """Return padded token ids, and those of a decoder (2, 7) where the head does not make them."""
    if head in ("ForSequenceClassification", "ForQuestionAnswering"):
        ids = tokens()
        ids[:, -1] = 2  # the end: each row has exactly one
        return {"input_ids": ids}
    return {**padded(), "decoder_input_ids": tokens(7, 3)}


def image(head: str = "", size: int = 32) -> np.ndarray:
    """Return images (2, 3, size, size) float32."""
    return np.random.default_rng(0).standard_normal((2, 3, size, size)).astype("float32")
