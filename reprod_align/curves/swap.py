"""A few steps of two trainings, any part of them done by either framework.

A step is data, forward pass, loss, backward pass, optimizer and schedule. Arrays go from one
framework to the other in float64, and nothing else does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from reprod_align.alignment import EndPins, Runner
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.blocks import Array
from reprod_align.base.console import tell
from reprod_align.base.difference import gap
from reprod_align.base.text import count
from reprod_align.curves.report import PARTS, Part
from reprod_align.curves.training import SEED, TrainingSide, TrainingState, convert_to_paddle
from reprod_align.errors import ReprodError
from reprod_align.match import TensorPair
from reprod_align.model import Projection, Trace, pair_outputs

import numpy as np

Assignment = Mapping[Part, Framework]
"""which framework does which part"""
TORCH: Final[Assignment] = dict.fromkeys(PARTS, "torch")
PADDLE: Final[Assignment] = dict.fromkeys(PARTS, "paddle")

_STRETCH: Final = 1e-5  # of a weight: how far it is moved to see what the loss does
_DIRECTIONS: Final = 3
_SLOPE: Final = 1e-4  # relative: what such a difference quotient is off by at most


@dataclass(frozen=True)
class WeightedOutputs(Projection):
    """The outputs times given gradients: a backward pass from it starts with them."""

    weights: Mapping[str, Array] | None = None

    def __call__(self, framework: ModuleType, outputs: Mapping[str, Any]) -> Any:
        """Return the scalar tensor; None if no gradient can flow from any output."""
        given = self.weights or {}
        used = [at for at in given if at in outputs and framework.carries_gradient(outputs[at])]
        if not used:
            return None
        return framework.weighted_sum([outputs[at] for at in used], [given[at] for at in used])


class Swap:
    """Two trainings at work, in float64, with their tensors paired."""

    def __init__(
        self, trainings: Mapping[Framework, TrainingSide], runner: Runner, last: int
    ) -> None:
        """Take two trainings whose sides work, a runner that has paired them, and the last step."""
        self.trainings, self.runner = trainings, runner
        self.backward_apart = True
        """whether Paddle's backward pass is judged apart from its forward pass"""
        tensors = runner.pairing.torch.tensors
        self.pairs: list[TensorPair] = [
            pair
            for pair in runner.pairing.match.pairs
            if all(tensors[name].is_parameter for name in pair.torch)
        ]
        self._rates = {name: training.side.rates(last) for name, training in trainings.items()}

    # ------------------------------------------------------------------ states

    def share(self, state: TrainingState) -> dict[Framework, TrainingState]:
        """Return PyTorch's state, and the same in Paddle."""
        training = self.trainings["paddle"]
        optimizer, library = training.make_optimizer(), training.library
        fresh = library.optimizer_state(optimizer, training.side.model)
        betas = library.betas(optimizer) if "beta1_pow_acc" in fresh else None
        kept = convert_to_paddle(state.kept, self.pairs, fresh, betas)
        return {
            "torch": state,
            "paddle": TrainingState(state.step, self.runner.port_start(state.weights), kept),
        }

    def convert(self, source: Framework, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return one side's parameters, or their gradients, as the other side has them."""
        made: dict[str, Array] = {}
        for pair in self.pairs:
            if source == "torch" and all(name in arrays for name in pair.torch):
                made.update(pair.to_paddle(arrays))
            elif source == "paddle" and all(name in arrays for name in pair.paddle):
                made.update(pair.to_torch(arrays))
        return made

    # ------------------------------------------------------------------ steps

    def train(self, who: Assignment, starts: Mapping[Framework, TrainingState], last: int) -> Array:
        """Return the losses up to step `last`, (N,); `who`: which framework does each part of a step."""
        return self._take_steps(who, starts, last)[0]

    def advance(self, start: TrainingState, last: int) -> tuple[Array, TrainingState]:
        """Return PyTorch's losses up to `last`, (N,), and the state it reaches."""
        losses, optimizer = self._take_steps(TORCH, {"torch": start}, last)
        training = self.trainings["torch"]
        kept = training.library.optimizer_state(optimizer, training.side.model)
        return losses, TrainingState(last, training.side.values(), kept)

    def _take_steps(
        self, who: Assignment, starts: Mapping[Framework, TrainingState], last: int
    ) -> tuple[Array, Any]:
        """Take the steps; return their losses, and the optimizer that took them."""
        owner, losses = self.trainings[who["optimizer"]], []
        start = starts[who["optimizer"]]
        for framework in set(who.values()):
            self.trainings[framework].side.load(starts[framework].weights)
        optimizer = owner.make_optimizer()
        owner.library.set_optimizer_state(optimizer, owner.side.model, start.kept)
        for step in range(start.step + 1, last + 1):
            tell(f"step {step} of {last}")
            self._share_weights(who)
            losses.append(self._compute_loss(who, step))
            source = self.trainings[self._backward(who)]
            if source is not owner:
                gradients = source.side.gradients()
                owner.side.set_gradients(self.convert(source.framework, gradients))
            owner.side.fw.set_rates(optimizer, self._choose_rates(who, step))
            optimizer.step()
        owner.side.set_gradients({})
        return np.array(losses), optimizer

    def _share_weights(self, who: Assignment) -> None:
        """Give the sides that run the model the weights of the side that changes them."""
        owner = who["optimizer"]
        for framework in {who["forward"], who["loss"], self._backward(who)} - {owner}:
            side = self.trainings[owner].side
            values = {name: side.fw.view(parameter) for name, parameter in side.parameters()}
            self.trainings[framework].side.load(self.convert(owner, values))

    def _compute_loss(self, who: Assignment, step: int) -> float:
        """Return the loss; the gradients are then with the side of the backward pass."""
        forward, judge, backward = who["forward"], who["loss"], self._backward(who)
        batch = self.trainings[who["data"]].read_batch(step)
        judged = self.trainings[forward].run(step, batch, take_gradients=False)
        if judge != forward:  # the loss of the other's outputs, which take the place of its own
            pins = EndPins(judged)
            judged = self.trainings[judge].run(step, batch, pins=pins, take_gradients=False)
        if backward != judge:
            given = WeightedOutputs(weights=self._carry_gradients(judge, judged))
            self.trainings[backward].run(step, batch, objective=given, take_gradients=False)
        return np.nan if judged.loss is None else judged.loss

    def _backward(self, who: Assignment) -> Framework:
        return who["backward"] if self.backward_apart else who["forward"]

    def _carry_gradients(self, source: Framework, judged: Trace) -> dict[str, Array]:
        """Return the loss's gradients with respect to the outputs, as the other side has these."""
        made: dict[str, Array] = {}
        for pair in self.runner.pairing.outputs or ():
            at, to = pair.expected, pair.actual
            axes: Any = pair.axes
            if source == "paddle":
                at, to, axes = to, at, None if axes is None else np.argsort(axes)
            gradient = judged.outputs[at].gradient if at in judged.outputs else None
            if gradient is not None:
                made[to] = gradient if axes is None else gradient.transpose(axes)
        return made

    def _choose_rates(self, who: Assignment, step: int) -> list[float]:
        """Return the rates of the optimizer's groups, the first one's by the schedule's side."""
        own, given = (self._find_rates(who[part], step) for part in ("optimizer", "schedule"))
        if who["schedule"] == who["optimizer"]:
            return own
        if len(set(own)) == 1 or not own[0]:
            return [given[0]] * len(own)
        return [rate * given[0] / own[0] for rate in own]

    def _find_rates(self, framework: Framework, step: int) -> list[float]:
        """Return the learning rates of a step, by the side's own schedule from the start."""
        known = self._rates[framework]
        if len(known) < step:
            raise ReprodError(
                f"{FRAMEWORKS[framework]}'s schedule ends after {count(len(known), 'step')}, and --explain "
                f"needs step {step}"
            )
        return known[step - 1]

    # ------------------------------------------------------------------ the backward pass

    def judge_backward(self, starts: Mapping[Framework, TrainingState], last: int) -> None:
        """Find out whether Paddle's backward pass can be judged apart from its forward pass.

        It can if the forward passes agree, or if Paddle's gradients do not fit its own forward pass. Where
        Paddle computes another function, other gradients follow from that and are no fault of their own.
        """
        ours, theirs = self.trainings["torch"], self.trainings["paddle"]
        ours.side.load(starts["torch"].weights)
        theirs.side.load(starts["paddle"].weights)
        for step in range(starts["torch"].step + 1, last + 1):
            batch = ours.read_batch(step)
            trace = theirs.run(step, batch)
            if not _agree(ours.run(step, batch), trace):
                self.backward_apart = not self._is_derivative(step, trace.gradients)
                return

    def _is_derivative(self, step: int, gradients: Mapping[str, Array]) -> bool:
        """Tell whether these are the gradients of Paddle's own loss, by difference quotients."""
        start, source = self.trainings["paddle"].side.values(), np.random.default_rng(SEED)
        names = [name for pair in self.pairs for name in pair.paddle]
        known = [name for name in names if name in gradients]
        for _ in range(_DIRECTIONS):
            move = {name: _draw_direction(start[name], source) for name in names}
            products = np.concatenate([(gradients[name] * move[name]).ravel() for name in known])
            higher, lower = (self._measure_moved_loss(step, start, move, sign) for sign in (1, -1))
            slope = (higher - lower) / 2
            if not abs(slope - products.sum()) <= _SLOPE * np.linalg.norm(products):
                return False
        return True

    def _measure_moved_loss(
        self, step: int, start: Mapping[str, Array], move: Mapping[str, Array], sign: int
    ) -> float:
        paddle = self.trainings["paddle"]
        paddle.side.load({name: start[name] + sign * moved for name, moved in move.items()})
        loss = paddle.run(step, self.trainings["torch"].read_batch(step)).loss
        paddle.side.load(start)
        return np.nan if loss is None else loss


def _agree(ours: Trace, theirs: Trace) -> bool:
    """Tell whether all paired outputs agree, and there is at least one."""
    pairs = pair_outputs(ours.outputs, theirs.outputs)
    return bool(pairs) and all(
        gap(pair.to_port(ours.outputs[pair.expected].array), theirs.outputs[pair.actual].array).ok
        for pair in pairs
    )


def _draw_direction(array: Array, source: np.random.Generator) -> Array:
    """Return a random direction, small beside the array."""
    size = _STRETCH * (float(np.abs(array).mean()) or 1.0)
    moved: Array = size * source.standard_normal(array.shape)
    return moved
