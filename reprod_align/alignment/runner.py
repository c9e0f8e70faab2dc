"""Runs either side from the same weights and with the same random draws."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Unpack

from reprod_align.alignment.pairing import Pairing
from reprod_align.base.blocks import Array
from reprod_align.model.backward import Projection
from reprod_align.model.side import Inputs, ModelFailure, RunOptions, Side, TrainingStep
from reprod_align.model.store import read_narrow
from reprod_align.model.trace import Leaf, Trace
from reprod_align.model.watch import Keep
from reprod_align.randomness import KeyedDraws

import numpy as np

SEED = 20211
_TRAINING_SEED = 77  # of the first training step; each further step has the next number
_AT_ONCE = 2**26  # bytes of weights that are converted before they are loaded


@dataclass(frozen=True)
class Runner:
    """Two sides at work, with their pairing. Before each run the weights are put back if one moved them."""

    reference: Side
    port: Side
    inputs: Inputs
    dtype: str
    pairing: Pairing
    weights: Mapping[str, Array]
    """PyTorch's tensors, from which every run of either side starts"""
    held: Mapping[str, Array]
    """Paddle's tensors as they came"""
    expected: Trace
    """PyTorch's run in eval mode"""
    eval_backward: bool
    """whether PyTorch's model allows a backward pass in eval mode"""
    before: tuple[Inputs, ...] = ()
    """what both models are called with first: what they keep of these calls is there in the run"""
    called: bool = False
    """whether those calls have just been made"""
    graded: bool = True
    """False: under no_grad"""
    draws_shared: bool = False
    """whether the pairing's places for random draws are known to be those of both sides"""
    differs: bool = False
    """whether the two sides are known to differ"""
    _drawn: dict[object, Mapping[Any, Any]] = field(default_factory=dict)
    """kind of run -> the random draws of PyTorch's side in it, which Paddle's side repeats"""
    made: dict[bool, tuple[Trace, Trace]] = field(default_factory=dict)
    """mode -> the runs of both sides, each from its own inputs, that were made before they are asked for"""
    _trained: dict[str, Leaf] = field(default_factory=dict)
    """the outputs of PyTorch's last run in train mode, which may be others than in eval mode"""
    moved: set[str] = field(default_factory=set)
    """the sides whose last run may have changed their tensors"""

    def __post_init__(self) -> None:
        """Note the draws of the run that was taken before there was a pairing."""
        self._drawn.setdefault((False, False), self.expected.drawn)

    @property
    def keeps_float32(self) -> bool:
        """Whether a model computes in float32 inside, since it asks for that and is not widened."""
        return self.reference.keeps_float32 or self.port.keeps_float32

    @property
    def kept_in_training(self) -> Keep:
        """What PyTorch's run in train mode keeps at first: little, unless it is known to be needed.

        What a layer was given tells what its running statistics should be.
        """
        tensors = self.pairing.torch.tensors.values()
        statistics = any(known.is_float and not known.is_parameter for known in tensors)
        return "all" if self.differs or statistics else "ends"

    # ---------------------------------------------------------------- single passes

    def run_reference(
        self,
        training: bool,
        loss: bool = False,
        keep: Keep = "all",
        inputs: Inputs | None = None,
        backward: bool = True,
        **how: Unpack[RunOptions],
    ) -> Trace:
        """Run PyTorch's side; `loss`: with the user's loss in place of a projection of the outputs.

        inputs: in place of those that both sides are given. backward: False: forward only, unless the
        loss is wanted. how: see `RunOptions`; `of_inputs` counts where the model takes inputs that
        require a gradient.
        """
        given = self.inputs if inputs is None else inputs
        objective = None if loss else self._make_objective(training, backward)
        trace = self._run(self.reference, given, training, (training, loss), keep, objective, how)
        if backward:
            self._drawn[training, loss] = trace.drawn
        if training:
            self._trained.clear()
            self._trained.update(trace.outputs)
        return trace

    def run_port(
        self,
        training: bool,
        keep: Keep,
        loss: bool = False,
        backward: bool = True,
        **how: Unpack[RunOptions],
    ) -> Trace:
        """Run Paddle's side on the inputs of both; the rest as for the reference."""
        objective = None if loss else self._make_objective(training, backward)
        if objective is not None:
            objective = self._follow_reference(objective, training)
        if backward and not how.get("defer"):  # gradients take as much memory as PyTorch's weights
            self.reference.rest()
        return self._run(self.port, self.inputs, training, (training, loss), keep, objective, how)

    def _run(
        self,
        side: Side,
        inputs: Inputs,
        training: bool,
        run: object,
        keep: Keep,
        objective: Projection | None,
        how: RunOptions,
    ) -> Trace:
        """Run a side from the weights, after the calls that come before; run: whose draws are repeated."""
        self._begin(side, training)
        self._call_before(side, training)
        is_reference = side is self.reference
        draws = (
            self._key_draws_of_reference(SEED)
            if is_reference
            else self._key_draws_of_port(SEED, run)
        )
        asked: RunOptions = {**how, "anew": not self.before, "graded": self.graded}
        try:
            return side.run(inputs, training, draws, keep, objective, **asked)
        except ModelFailure:
            if not how.get("of_inputs"):
                raise
            how = {**how, "of_inputs": False}
            return self._run(side, inputs, training, run, keep, objective, how)

    def run_in_turn(self, side: Side) -> list[Trace]:
        """Return a side's second call in train mode, and one in eval mode that follows, forward only.

        The buffers that both sides hold are put back before the last: what is left of the calls in
        train mode is what a side keeps elsewhere.
        """
        nothing, is_reference = Projection(only=frozenset()), side is self.reference
        self._begin(side, True)
        traces: list[Trace] = []
        for number, training in enumerate((True, True, False)):
            seed, run = SEED + 1 + number, ("in turn", number)
            draws = (
                self._key_draws_of_reference(seed)
                if is_reference
                else self._key_draws_of_port(seed, run)
            )
            if not training:
                side.set_buffers(self._list_paired_buffers(is_reference))
            traces.append(side.run(self.inputs, training, draws, "ends", nothing, anew=number == 0))
            if is_reference:
                self._drawn[run] = traces[-1].drawn
        return traces[1:]

    def _list_paired_buffers(self, is_reference: bool) -> dict[str, Array]:
        """Return the values from which every run starts, of the buffers that have a counterpart."""
        torch, paddle = self.pairing.torch.tensors, self.pairing.paddle.tensors
        pairs = [
            pair
            for pair in self.pairing.match.pairs
            if not any(torch[name].is_parameter for name in pair.torch)
            and not any(paddle[name].is_parameter for name in pair.paddle)
        ]
        if is_reference:
            return {name: self.weights[name] for pair in pairs for name in pair.torch}
        return {
            name: array for pair in pairs for name, array in pair.to_paddle(self.weights).items()
        }

    def _call_before(self, side: Side, training: bool) -> None:
        """Make the calls that come before the run; the first begins anew."""
        nothing = Projection(only=frozenset())
        for number, inputs in enumerate(() if self.called else self.before):
            draws = self._key_draws_of_port(SEED, ("before", number))
            if side is self.reference:
                draws = self._key_draws_of_reference(SEED)
            trace = side.run(
                inputs, training, draws, "none", nothing, anew=number == 0, graded=self.graded
            )
            if side is self.reference:
                self._drawn["before", number] = trace.drawn

    def _make_objective(self, training: bool, backward: bool) -> Projection:
        """Return the scalar of PyTorch's outputs that a backward pass begins with.

        Outputs of eval mode without a counterpart do not count. Those of train mode alone do.
        """
        if not backward or not (training or self.eval_backward):
            return Projection(only=frozenset())
        compared = self.pairing.compared_outputs
        known = frozenset(self.expected.outputs) if compared is not None else frozenset()
        return Projection(without=known - (compared or frozenset()))

    def _follow_reference(self, objective: Projection, training: bool) -> Projection:
        """Return the scalar of Paddle's outputs that stands for the one of PyTorch's."""
        expected = (training and self._trained) or self.expected.outputs
        return replace(objective, expected=expected, pairs=tuple(self.pairing.outputs or ()))

    # ---------------------------------------------------------------- training

    def train_reference(
        self, steps: int, weights: Mapping[str, Array] | None = None
    ) -> list[TrainingStep]:
        """Train PyTorch's side, from `weights` if they are given."""
        self._begin(self.reference, True)
        if weights is not None:
            self.reference.load(weights)
        draws = [self._key_draws_of_reference(_TRAINING_SEED + step) for step in range(steps)]
        loss = self.reference.loss is not None
        objective = None if loss else self._make_objective(training=True, backward=True)
        taken = self.reference.train(self.inputs, steps, draws, objective)
        self._drawn.update({number: step.drawn for number, step in enumerate(taken)})
        return taken

    def train_port(
        self, steps: int, replay: Sequence[TrainingStep] | None = None
    ) -> list[TrainingStep]:
        """Train Paddle's side; `replay`: with the gradients and learning rates of PyTorch's steps."""
        self._begin(self.port, True)
        draws = [self._key_draws_of_step(step) for step in range(steps)]
        gradients = rates = None
        if replay is not None:
            gradients = [self.pairing.convert(step.gradients) for step in replay]
            rates = [step.rates for step in replay]
        objective = self._make_training_objective()
        return self.port.train(self.inputs, steps, draws, objective, gradients, rates)

    def run_step(self, number: int, tensors: Mapping[str, Array] | None) -> Trace:
        """Run Paddle's side as in training step `number`, from PyTorch's `tensors` (None: the first)."""
        self._begin(self.port, True)
        if tensors is not None:
            self.port.load(self.pairing.convert(tensors))
        draws, objective = self._key_draws_of_step(number), self._make_training_objective()
        return self.port.run(self.inputs, True, draws, "none", objective, anew=True)

    def _make_training_objective(self) -> Projection | None:
        if self.port.loss is not None:
            return None
        objective = self._make_objective(training=True, backward=True)
        return self._follow_reference(objective, training=True)

    # ---------------------------------------------------------------- random draws

    def _key_draws_of_reference(self, seed: int) -> KeyedDraws:
        return KeyedDraws(seed, {place: place for place in self.pairing.places.values()})

    def _key_draws_of_port(self, seed: int, run: object) -> KeyedDraws:
        return KeyedDraws(seed, self.pairing.places, self._drawn.get(run, {}))

    def _key_draws_of_step(self, number: int) -> KeyedDraws:
        return self._key_draws_of_port(_TRAINING_SEED + number, number)

    # ---------------------------------------------------------------- weights

    def load_port(self) -> None:
        """Give Paddle's model PyTorch's weights, some at a time: the converted ones need memory."""
        made: dict[str, Array] = {}
        weights = read_narrow(self.weights)
        for pair in self.pairing.loaded:
            made.update(pair.to_paddle(weights))
            if sum(array.nbytes for array in made.values()) > _AT_ONCE:
                self.port.load(made)
                made = {}
        self.port.load(made)

    def port_start(self, weights: Mapping[str, Array] | None = None) -> dict[str, Array]:
        """Return Paddle's tensors as a run starts from them; `weights`: in place of PyTorch's first."""
        return {
            **self._port_own,
            **self.pairing.convert(self.weights if weights is None else weights),
        }

    @cached_property
    def _port_own(self) -> dict[str, Array]:
        """Paddle's tensors that keep values of their own."""
        loaded = self.pairing.loaded_names
        return {name: self.held[name] for name in self.held if name not in loaded}

    def _begin(self, side: Side, training: bool) -> None:
        """Put the weights back before a run; one in train mode may move them."""
        self.put_back(side)
        if training:
            self.moved.add(side.name)

    def put_back(self, *sides: Side) -> None:
        """Give sides (both, unless they are named) the tensors from which every run starts."""
        for side in sides or (self.reference, self.port):
            if side.name not in self.moved:
                continue
            self.moved.remove(side.name)
            if side is self.reference:
                self.reference.load(read_narrow(self.weights))
            else:
                self.port.load(self._port_own)
                self.load_port()


def shake(weights: Mapping[str, Array], epsilon: float, seed: int) -> Iterator[tuple[str, Array]]:
    """Yield the float tensors of `weights` by name, each element moved by up to 4 `epsilon` of it."""
    source = np.random.default_rng(seed)
    for name, array in weights.items():
        if array.dtype.kind == "f":
            yield name, array * (1 + 4 * epsilon * source.uniform(-1, 1, array.shape))
