"""A few steps of two trainings, any part of them done by either framework.

A step is data, forward pass, loss, backward pass, optimizer and schedule. Arrays go from one
framework to the other in float64, and nothing else does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from reprod_align.alignment.locating.pins import EndPins
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import gap
from reprod_align.base.progress import tell
from reprod_align.curves.explanation import PARTS, Part
from reprod_align.curves.replay.state import Kept, State, as_paddle, to_torch
from reprod_align.curves.replay.training import SEED, StepDraws, Training, TrainingFile
from reprod_align.errors import ReprodError, first_line
from reprod_align.model.projection import Projection, root_pairs
from reprod_align.model.side import Inputs
from reprod_align.model.tensor_pair import TensorPair
from reprod_align.model.trace import Array, Trace
from reprod_align.pair.file import FRAMEWORKS, Framework

import numpy as np

Who = Mapping[Part, Framework]
"""which framework does which part"""
TORCH: Final[Who] = dict.fromkeys(PARTS, "torch")
PADDLE: Final[Who] = dict.fromkeys(PARTS, "paddle")

_STRETCH: Final = 1e-5  # of a weight: how far it is moved to see what the loss does
_DIRECTIONS: Final = 3
_SLOPE: Final = 1e-4  # relative: what such a difference quotient is off by at most


@dataclass(frozen=True)
class Given(Projection):
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
        self, file: TrainingFile, trainings: Mapping[Framework, Training], runner: Runner, last: int
    ) -> None:
        """Take two trainings whose sides work, a runner that has paired them, and the last step."""
        self.file, self.trainings, self.runner, self.last = file, trainings, runner, last
        self.backward_apart = True
        """whether Paddle's backward pass is judged apart from its forward pass"""
        tensors = runner.pairing.torch.tensors
        self.pairs: list[TensorPair] = [
            pair
            for pair in runner.pairing.match.pairs
            if all(tensors[name].is_parameter for name in pair.torch)
        ]
        self._rates: dict[Framework, list[list[float]]] = {}

    # ------------------------------------------------------------------ states

    def common(self, state: State) -> dict[Framework, State]:
        """Return PyTorch's state, and the same in Paddle."""
        side, library = self.trainings["paddle"].side, _library("paddle")
        optimizer = self._optimizer("paddle")
        fresh = library.optimizer_state(optimizer, side.model)
        betas = library.betas(optimizer) if "beta1_pow_acc" in fresh else None
        kept = as_paddle(state.kept, self.pairs, fresh, betas)
        return {
            "torch": state,
            "paddle": State(state.step, self.runner.port_start(state.weights), kept),
        }

    def converted(self, source: Framework, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return one side's parameters, or their gradients, as the other side has them."""
        made: dict[str, Array] = {}
        for pair in self.pairs:
            if source == "torch" and all(name in arrays for name in pair.torch):
                made.update(pair.to_paddle(arrays))
            elif source == "paddle" and all(name in arrays for name in pair.paddle):
                made.update(to_torch(pair, arrays, self.runner.weights))
        return made

    # ------------------------------------------------------------------ steps

    def losses(self, who: Who, starts: Mapping[Framework, State], last: int) -> Array:
        """Return the losses of the steps up to `last`, (N,), each part done by whom `who` says."""
        return self._taken(who, starts, last)[0]

    def reached(self, start: State, last: int) -> tuple[Array, State]:
        """Return PyTorch's losses up to `last`, (N,), and where it arrives."""
        losses, optimizer = self._taken(TORCH, {"torch": start}, last)
        side = self.trainings["torch"].side
        kept = _library("torch").optimizer_state(optimizer, side.model)
        return losses, State(last, side.values(), kept)

    def _taken(self, who: Who, starts: Mapping[Framework, State], last: int) -> tuple[Array, Any]:
        """Take the steps; return their losses, and the optimizer that took them."""
        owner, losses = who["optimizer"], []
        training, library = self.trainings[owner], _library(owner)
        for framework in set(who.values()):
            self.trainings[framework].side.load(starts[framework].weights)
        optimizer = self._optimizer(owner)
        library.set_optimizer_state(optimizer, training.side.model, starts[owner].kept)
        for step in range(starts[owner].step + 1, last + 1):
            tell(f"step {step} of {last}")
            self._bring(who)
            losses.append(self._loss(who, step))
            source = self._backward(who)
            if source != owner:
                self._set(owner, self.converted(source, self._gradients(source)))
            library.set_rates(optimizer, self._rates_of(who, step))
            training.side.fw.update(optimizer)
        self._set(owner, {})
        return np.array(losses), optimizer

    def judge_backward(self, starts: Mapping[Framework, State], last: int) -> None:
        """Find out whether Paddle's backward pass can be judged apart from its forward pass.

        It can where the forward passes agree, and where its gradients are not those of its own
        forward pass. Where it computes something else, other gradients are no fault of their own.
        """
        for framework, training in self.trainings.items():
            training.side.load(starts[framework].weights)
        for step in range(starts["torch"].step + 1, last + 1):
            ours, theirs = (self._run(framework, step) for framework in FRAMEWORKS)
            if not self._agree(ours, theirs):
                self.backward_apart = not self._is_derivative(step, theirs)
                return

    # ------------------------------------------------------------------ parts of a step

    def _pass(self, framework: Framework, step: int, data: Framework, **how: Any) -> Trace:
        """Run one side forward and backward on a step's data; the gradients stay with its parameters."""
        inputs, draws = self._given(framework, step, data)
        side = self.trainings[framework].side
        return side.run(inputs, True, draws, "ends", **how, take_gradients=False)

    def _run(self, framework: Framework, step: int) -> Trace:
        """Do the same on PyTorch's data, the gradients in the trace."""
        inputs, draws = self._given(framework, step, "torch")
        return self.trainings[framework].side.run(inputs, True, draws, "ends")

    def _given(self, framework: Framework, step: int, data: Framework) -> tuple[Inputs, StepDraws]:
        """Return a step's inputs and random numbers; its targets go to the side's loss."""
        inputs, self.trainings[framework].targets.arrays = self.trainings[data].data(step)
        return inputs, self.file.draws(step)

    def _loss(self, who: Who, step: int) -> float:
        """Return the loss; the gradients are then with the side of the backward pass."""
        forward, judge, backward = who["forward"], who["loss"], self._backward(who)
        judged = self._pass(forward, step, who["data"])
        if judge != forward:  # the loss of the other's outputs, which take the place of its own
            judged = self._pass(judge, step, who["data"], pins=EndPins(judged))
        if backward != judge:
            given = Given(weights=self._carried(judge, judged))
            self._pass(backward, step, who["data"], objective=given)
        return np.nan if judged.loss is None else judged.loss

    def _backward(self, who: Who) -> Framework:
        return who["backward"] if self.backward_apart else who["forward"]

    def _carried(self, source: Framework, judged: Trace) -> dict[str, Array]:
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

    def _agree(self, ours: Trace, theirs: Trace) -> bool:
        pairs = root_pairs(ours.outputs, theirs.outputs)
        found = [(ours.outputs[p.expected].array, theirs.outputs[p.actual].array, p) for p in pairs]
        return bool(found) and all(gap(pair.turned(one), two).ok for one, two, pair in found)

    def _is_derivative(self, step: int, trace: Trace) -> bool:
        """Tell whether Paddle's gradients are those of its own loss, by difference quotients."""
        side, source = self.trainings["paddle"].side, np.random.default_rng(SEED)
        start, given = side.values(), trace.gradients
        names = [name for pair in self.pairs for name in pair.paddle]
        for _ in range(_DIRECTIONS):
            move = {name: _small(start[name], source) for name in names}
            products = np.concatenate(
                [(given[name] * moved).ravel() for name, moved in move.items() if name in given]
            )
            ends = [self._moved_loss(step, start, move, sign) for sign in (1, -1)]
            quotient = (ends[0] - ends[1]) / 2
            if not abs(quotient - products.sum()) <= _SLOPE * np.linalg.norm(products):
                return False
        return True

    def _moved_loss(
        self, step: int, start: Mapping[str, Array], move: Mapping[str, Array], sign: int
    ) -> float:
        side = self.trainings["paddle"].side
        side.load({name: start[name] + sign * moved for name, moved in move.items()})
        loss = self._run("paddle", step).loss
        side.load(start)
        return np.nan if loss is None else loss

    # ------------------------------------------------------------------ weights, gradients and rates

    def _bring(self, who: Who) -> None:
        """Give the sides that run the model the weights of the side that changes them."""
        owner = who["optimizer"]
        for framework in {who["forward"], who["loss"], self._backward(who)} - {owner}:
            view = self.trainings[owner].side.fw.view
            values = {name: view(parameter) for name, parameter in self._parameters(owner)}
            self.trainings[framework].side.load(self.converted(owner, values))

    def _gradients(self, framework: Framework) -> dict[str, Array]:
        fw = self.trainings[framework].side.fw
        found = ((name, fw.gradient(tensor)) for name, tensor in self._parameters(framework))
        return {name: gradient for name, gradient in found if gradient is not None}

    def _set(self, framework: Framework, gradients: Mapping[str, Array]) -> None:
        fw = self.trainings[framework].side.fw
        for name, parameter in self._parameters(framework):
            fw.set_gradient(parameter, gradients.get(name))

    def _parameters(self, framework: Framework) -> Iterator[tuple[str, Any]]:
        side, seen = self.trainings[framework].side, set()
        for path, module in side.fw.modules(side.model):
            for role, tensor, is_parameter in side.fw.own_tensors(module):
                if is_parameter and id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield f"{path}.{role}" if path else role, tensor

    def _optimizer(self, framework: Framework) -> Any:
        side = self.trainings[framework].side
        return side.optimizer(side.model) if side.optimizer is not None else None

    def _rates_of(self, who: Who, step: int) -> list[float]:
        """Return the rates of the optimizer's groups, the first one's by the schedule's side."""
        own, given = self._rate(who["optimizer"], step), self._rate(who["schedule"], step)
        if who["schedule"] == who["optimizer"] or len(set(own)) == 1 or not own[0]:
            return own if who["schedule"] == who["optimizer"] else [given[0]] * len(own)
        return [rate * given[0] / own[0] for rate in own]

    def _rate(self, framework: Framework, step: int) -> list[float]:
        """Return the learning rates of a step, by the side's own schedule from the start."""
        if framework not in self._rates:
            self._rates[framework] = self.trainings[framework].side.rates(self.last)
        known = self._rates[framework]
        if len(known) < step:
            raise ReprodError(
                f"{self.file.path}: {FRAMEWORKS[framework]}'s schedule ends after {len(known)} "
                f"step(s), and step {step} is asked for"
            )
        return known[step - 1]


def _small(array: Array, source: np.random.Generator) -> Array:
    """Return a random direction, small beside the array."""
    size = _STRETCH * (float(np.abs(array).mean()) or 1.0)
    moved: Array = size * source.standard_normal(array.shape)
    return moved


def _library(framework: Framework) -> Any:
    """Return what knows the framework's optimizers."""
    return import_module(f"reprod_align.backends.{framework}.optimizer_state")


def restored(training: Training, framework: Framework, step: int) -> Kept:
    """Load what the side saved after `step` into its model; return what its optimizer keeps.

    Raises ReprodError if that does not fit the optimizer.
    """
    side, library = training.side, _library(framework)
    if side.optimizer is None or training.restore is None:
        return {}
    optimizer = side.optimizer(side.model)
    training.restore(side.model, optimizer, step)
    try:
        kept: Kept = library.optimizer_state(optimizer, side.model)
    except AssertionError as error:  # Paddle's, of an entry that is not there
        raise ReprodError(
            f"{framework}_restore: the optimizer's state does not fit ({first_line(str(error))}): Paddle "
            "names it by the numbers of the layers that a process makes, so make the model as that run did"
        ) from error
    return kept
