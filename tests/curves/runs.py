"""A small training run, its planted faults, and its log: shared by the tests of curves."""

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from reprod_align.commands import parse
from reprod_align.curves.report import CurveReport, CurveResult

import numpy as np

BATCH, WIDTH, HIDDEN, PER_EPOCH = 16, 16, 32, 60
Values = dict[str, list[float]]


class Run:
    """A small training run with dropout and AdamW, and the mistakes that a port of it may make."""

    def __init__(
        self,
        dtype: type[np.floating[Any]] = np.float32,
        steps: int = 240,
        nudge: int = 0,
        decay: float = 0.01,
        rate: float = 3e-3,
        ahead: int = 0,
        swapped: int = 0,
        draws: int = 0,
        order: int = 0,
        order_from: int = 0,
        weights: int = 0,
        scale: float = 1.0,
    ) -> None:
        """`nudge`: seed of a rounding error in the weights; `ahead`: steps the schedule is early."""
        self.dtype, self.decay, self.scale = dtype, decay, scale
        self.swapped, self.draws, self.order, self.order_from = swapped, draws, order, order_from
        data = np.random.default_rng(5)
        self.x = data.normal(size=(PER_EPOCH * BATCH, WIDTH)).astype(dtype)
        self.y = (self.x[:, :1] * self.x[:, 1:2] > 0).astype(dtype)
        start = np.random.default_rng(weights)
        shapes = ((WIDTH, HIDDEN), (HIDDEN, 1))
        self.weights = [(0.3 * start.normal(size=s)).astype(dtype) for s in shapes]
        if nudge:
            self._nudge(np.random.default_rng(nudge))
        self.moments = [[np.zeros_like(w), np.zeros_like(w)] for w in self.weights]
        self.rates = [self._rate(step + ahead, rate, steps) for step in range(steps)]

    def values(self) -> Values:
        """Return {curve: one value a step}."""
        logged: Values = {"loss": [], "lr": [], "grad_norm": []}
        for step, rate in enumerate(self.rates, 1):
            loss, gradients = self._backward(step)
            norm = math.sqrt(sum(float((g * g).sum()) for g in gradients))
            self._update(step, rate, gradients)
            for name, value in zip(logged, (loss * self.scale, rate, norm), strict=True):
                logged[name].append(float(value))
        return logged

    def _nudge(self, random: np.random.Generator) -> None:
        eps = np.finfo(self.dtype).eps
        for weight in self.weights:
            weight *= (1 + eps * random.choice([-1, 0, 1], weight.shape)).astype(self.dtype)

    @staticmethod
    def _rate(step: int, rate: float, steps: int, warmup: int = 20) -> float:
        falling = 1 - max(0, step - warmup) / (steps - warmup + 1)
        return rate * min(1, step / warmup) * falling

    def _batch(self, step: int) -> slice | Any:
        epoch, place = divmod(step - 1, PER_EPOCH)
        place = (place + 7) % PER_EPOCH if step == self.swapped else place
        seed = self.order if epoch >= self.order_from else 0
        order = np.random.default_rng([epoch, seed]).permutation(len(self.x))
        return order[place * BATCH : (place + 1) * BATCH]

    def _backward(self, step: int) -> tuple[float, list[Any]]:
        batch, dtype = self._batch(step), self.dtype
        x, y = self.x[batch], self.y[batch]
        kept = np.random.default_rng([step, self.draws]).random((BATCH, HIDDEN)) >= 0.1
        mask = kept.astype(dtype) / dtype(0.9)
        before = x @ self.weights[0]
        hidden = np.maximum(before, 0) * mask  # (B, H)
        logits = hidden @ self.weights[1]  # (B, 1)
        loss = float((np.logaddexp(dtype(0), logits) - y * logits).mean(dtype=dtype))
        by_logits = (1 / (1 + np.exp(-logits)) - y) / dtype(BATCH)
        by_hidden = by_logits @ self.weights[1].T * mask * (before > 0)
        return loss, [x.T @ by_hidden, hidden.T @ by_logits]

    def _update(self, step: int, rate: float, gradients: Sequence[Any]) -> None:
        for place, gradient in enumerate(gradients):
            first, second = self.moments[place]
            first[:] = 0.9 * first + 0.1 * gradient
            second[:] = 0.999 * second + 0.001 * gradient**2
            mean, square = first / (1 - 0.9**step), second / (1 - 0.999**step)
            update = rate * mean / (np.sqrt(square) + 1e-8)
            self.weights[place][:] = self.weights[place] * (1 - rate * self.decay) - update


@cache
def run(**options: Any) -> Values:
    return Run(**options).values()


def write_lines(path: Path, values: Values, epochs: bool = True) -> Path:
    """Write the log as a training loop of this project does: one JSON object a step."""
    with path.open("w", encoding="utf-8") as handle:
        for place, row in enumerate(zip(*values.values(), strict=True)):
            line = {"step": place + 1} | ({"epoch": place // PER_EPOCH} if epochs else {})
            print(json.dumps(line | dict(zip(values, row, strict=True))), file=handle)
    return path


def lines_of(path: Path, steps: Sequence[int], loss: Sequence[float]) -> Path:
    rows = [json.dumps({"step": s, "loss": v}) for s, v in zip(steps, loss, strict=True)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def command(*words: str | Path) -> int:
    """Run `reprod-align curves` with these words; return its exit code."""
    options = parse(["curves", *map(str, words)])
    return int(options.run(options))


def one(report: CurveReport, quantity: str = "loss") -> CurveResult:
    return next(result for result in report.results if result.quantity == quantity)


def said(report: CurveReport) -> str:
    return report.summary()
