"""The questions of a proof, asked of either side in the same words, and its answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reprod_align.base.blocks import Array
from reprod_align.contract.process import ProofSide
from reprod_align.contract.terms import Terms, Tokens, draw_batch
from reprod_align.errors import ReprodError
from reprod_align.model import Leaf, Projection, Trace
from reprod_align.randomness import KeyedDraws

import numpy as np

NOTHING = Projection(only=frozenset())
_PROMPT = 1000  # the number of the batch that greedy generation begins with
_TRAINING = 2000  # the number of the first batch of the training
_SEEDS = 2**31  # of the frameworks' generators
_MOVED = 0.05  # relative: how far the second weights are from the first

Outputs = Mapping[str, Leaf]
Weights = Mapping[str, Array]


@dataclass(frozen=True)
class Questions:
    """What both sides are asked; everything follows from the terms and the seed."""

    terms: Terms
    seed: int

    def list_batches(self) -> list[dict[str, Array]]:
        """Return the batches; the first two have the same shapes."""
        rules = self.terms.inputs
        first = [draw_batch(rules, self.seed, 0), draw_batch(rules, self.seed, 0, twin=1)]
        return first + [draw_batch(rules, self.seed, n) for n in range(1, self.terms.batches)]

    def draw_prompt(self, tokens: Tokens) -> dict[str, Array]:
        """Return the batch that greedy generation begins with, nothing of it masked."""
        batch = draw_batch(self.terms.inputs, self.seed, _PROMPT)
        return batch | ({tokens.mask: np.ones_like(batch[tokens.mask])} if tokens.mask else {})

    def list_training_batches(self, steps: int) -> list[dict[str, Array]]:
        """Return a batch for each training step."""
        return [draw_batch(self.terms.inputs, self.seed, _TRAINING + n) for n in range(steps)]

    def move(self, weights: Weights, parameters: Mapping[str, str]) -> dict[str, Array]:
        """Return weights with every float parameter moved; parameters: name -> the name of its tie."""
        moved, made = dict(weights), dict[str, Array]()
        source = np.random.default_rng([self.seed, 1])
        for name, tie in parameters.items():
            array = weights[name]
            if array.dtype.kind != "f":
                continue
            if tie not in made:
                drawn = source.uniform(-1, 1, array.shape)
                spread = float(np.abs(array).mean()) if array.size else 0.0
                made[tie] = array * (1 + _MOVED * drawn) + _MOVED * spread * drawn[::-1]
            moved[name] = made[tie]
        return moved


@dataclass
class Answers:
    """What one side answered."""

    outputs: list[Outputs] = field(default_factory=list)
    """of each batch"""
    again: Outputs = field(default_factory=dict)
    """of the first batch, once more at the end"""
    moved: Outputs = field(default_factory=dict)
    """of the first batch, with other weights"""
    narrow: Outputs = field(default_factory=dict)
    """of the first batch, in float32"""
    tokens: list[list[int]] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


def list_calls(trace: Trace) -> list[str]:
    """Return the modules in the order in which they were called, the model itself left out."""
    return list(dict.fromkeys(call.path for call in trace.calls if call.path))


class NoTensorError(ReprodError):
    """A model returned no tensor."""


def run_once(side: ProofSide, batch: Mapping[str, Array]) -> Trace:
    """Return a forward pass in eval mode. Raises NoTensorError without an output."""
    trace: Trace = side.run(
        batch, False, KeyedDraws(0, {}), "ends", NOTHING, graded=False, anew=True
    )
    if not trace.outputs:
        raise NoTensorError(f"{side.name}'s model returned no tensor")
    return trace


def ask(
    side: ProofSide,
    questions: Questions,
    first: Weights,
    second: Weights,
    places: Mapping[str, str],
) -> Answers:
    """Ask one side everything. first, second: its tensors, in its own layout; places: of its draws."""
    terms, found = questions.terms, Answers()
    batches = questions.list_batches()
    side.load(first)
    found.outputs = [run_once(side, batch).outputs for batch in batches]
    side.load(second)
    found.moved = run_once(side, batches[0]).outputs
    side.load(first)
    if terms.tokens:
        found.tokens = _generate(side, questions, terms.tokens)
    if terms.training:
        drawn = questions.list_training_batches(terms.training.steps)
        found.losses = side.list_losses(drawn, questions.seed % _SEEDS, places)
        side.load(first)
    found.again = run_once(side, batches[0]).outputs
    return found


def _generate(side: ProofSide, questions: Questions, tokens: Tokens) -> list[list[int]]:
    """Return the greedy tokens of each row: the largest logit, again and again."""
    batch = questions.draw_prompt(tokens)
    rows: list[list[int]] = [[] for _ in batch[tokens.input]]
    for _ in range(tokens.count):
        logits = _find_logits(run_once(side, batch).outputs, tokens, batch[tokens.input].shape)
        chosen = logits[:, -1].argmax(-1)  # (B,)
        for row, token in zip(rows, chosen.tolist(), strict=True):
            row.append(token)
        batch[tokens.input] = np.concatenate([batch[tokens.input], chosen[:, None]], 1)
        if tokens.mask:
            longer = np.ones((len(chosen), 1), batch[tokens.mask].dtype)
            batch[tokens.mask] = np.concatenate([batch[tokens.mask], longer], 1)
    return rows


def _find_logits(outputs: Outputs, tokens: Tokens, shape: Sequence[int]) -> Array:
    """Return the logits (B, L, V) among a model's outputs."""
    for name, leaf in outputs.items():
        fits = leaf.array.ndim == 3 and leaf.array.shape[:2] == tuple(shape)
        if (name == tokens.output if tokens.output in outputs else fits) and fits:
            return leaf.array
    raise ReprodError(
        f"no output has logits for {tuple(shape)} tokens: {', '.join(outputs) or 'none'}"
    )
