"""The two models at work: their pairing is the weights' map, and a forward pass proves what was converted."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from reprod_align.alignment import (
    Findings,
    Noise,
    Pairing,
    Runner,
    compare_outputs,
    find_idle,
    pair_models,
)
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.blocks import Array
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.match import Shape, TensorPair
from reprod_align.model import Inputs, ModelFailure, ModelInfo, Side
from reprod_align.weights import Stored

import numpy as np

_COUNTER = "num_batches_tracked"
_SEED = 20213


@dataclass(frozen=True)
class ModelState:
    """One side's state dict."""

    info: ModelInfo
    own: Mapping[str, str]
    """the state dict's name -> the model's own name of the tensor; "" for what is computed"""
    first: Mapping[str, str]
    """the name that stands for all names of a tensor in the model -> the state dict's first of it"""
    tied: Mapping[str, str]
    """the state dict's second names -> its first ones"""

    @property
    def names(self) -> list[str]:
        """The state dict's names, second names left out."""
        return [name for name in self.own if name not in self.tied]

    @property
    def expected(self) -> dict[str, tuple[Shape, bool]]:
        """The shape of each of its tensors, and whether it holds floats."""
        return {
            name: (self.info.tensors[own].shape, self.info.tensors[own].is_float)
            for name, own in self.own.items()
            if own
        }

    def find(self, own: str) -> str:
        """Return what the state dict calls a tensor of the model, "" if it does not hold it."""
        return self.first.get(self.info.tensors[own].tie, "")


def describe_state(side: Side) -> ModelState:
    """Return what a side's state dict holds."""
    info, own = side.describe(), side.saved_names()
    first: dict[str, str] = {}
    tied: dict[str, str] = {}
    ties = {name: info.tensors[held].tie for name, held in own.items() if held}
    for name in sorted(ties, key=lambda name: own[name] != ties[name]):  # the tie's own name first
        if first.setdefault(ties[name], name) != name:
            tied[name] = first[ties[name]]
    return ModelState(info, own, first, tied)


def derive_map(
    pairing: Pairing,
    torch: ModelState,
    paddle: ModelState,
    idle: tuple[Collection[str], Collection[str]] = ((), ()),
) -> tuple[WeightMap, dict[str, str]]:
    """Return the map, and what it lacks: the tensors of the state dicts without a counterpart, in words.

    idle: PyTorch's and Paddle's tensors that need none, since the outputs do not depend on them.
    """
    rules = list(dict.fromkeys(_pair_rules(pairing, torch, paddle)))
    paired = {name for rule in rules if rule.torch and rule.paddle for name in rule.names}
    rules = [rule for rule in rules if (rule.torch and rule.paddle) or not paired & {*rule.names}]
    lacking: dict[str, str] = {}
    sides: list[tuple[ModelState, Framework, Collection[str]]]
    sides = [(torch, "torch", idle[0]), (paddle, "paddle", idle[1])]
    for side, at, unused in sides:
        known = {name for rule in rules for name in getattr(rule, at)}
        for name in side.names:
            if name in known:
                continue
            if side.own[name] in unused or _is_dispensable(side, name):
                rules.append(TensorPair((name,), ()) if at == "torch" else TensorPair((), (name,)))
            else:
                own = side.own[name]
                shape = side.info.tensors[own].shape if own else "which its state_dict computes"
                lacking[name] = f"without a counterpart: {FRAMEWORKS[at]}'s {name} {shape}"
    return WeightMap(tuple(rules), {"torch": torch.tied, "paddle": paddle.tied}), lacking


def _pair_rules(pairing: Pairing, torch: ModelState, paddle: ModelState) -> Iterator[TensorPair]:
    for pair in pairing.match.pairs:
        ours, theirs = tuple(map(torch.find, pair.torch)), tuple(map(paddle.find, pair.paddle))
        if all(ours) and all(theirs):
            yield replace(pair, torch=ours, paddle=theirs).drop_shapes()
        else:
            yield from (TensorPair((name,), ()) for name in ours if name)
            yield from (TensorPair((), (name,)) for name in theirs if name)


def _is_dispensable(side: ModelState, name: str) -> bool:
    """Tell whether a tensor needs no counterpart: integers that a model makes itself, and counters."""
    tensor = side.info.tensors.get(side.own[name])
    if tensor is None:
        return False
    return tensor.role == _COUNTER or not (tensor.is_float or tensor.is_parameter)


@dataclass(frozen=True)
class ModelPair:
    """Two sides, inputs for both, and what the user says of their names."""

    torch: Side
    paddle: Side
    inputs: Inputs
    name_map: Mapping[str, str] | None = None

    def side(self, framework: str) -> Side:
        """Return one side."""
        return self.torch if framework == "torch" else self.paddle


@dataclass(frozen=True)
class Agreement:
    """How far the outputs of the two models are apart, each with its own file's weights."""

    relative: float
    passed: bool
    words: str = ""
    """where they are furthest apart, or why the port does not run"""

    def summary(self) -> str:
        """Return it as a sentence."""
        if self.passed:
            return f"the outputs of both models agree to {self.relative:.1e} (float64, relative)"
        apart = f" by {self.relative:.1e} (float64, relative)" if np.isfinite(self.relative) else ""
        return (
            f"the outputs of the models differ{apart}: {self.words}. "
            "reprod-align pair says where; --no-check writes the file all the same"
        )


class Models:
    """A pair in float64. Made by `work_with`, which gives both models back as they came."""

    def __init__(self, pair: ModelPair) -> None:
        """Note what the two state dicts hold, before anything is changed."""
        self.pair = pair
        self.saved: dict[str, ModelState] = {
            name: describe_state(pair.side(name)) for name in FRAMEWORKS
        }
        self._came_with = {name: pair.side(name).values() for name in self.saved}
        self._runner: Runner | None = None
        self.remarks: list[str] = []

    def read_own_values(self, framework: str, names: list[str]) -> dict[str, Array]:
        """Return what a model came with under these names of its state dict."""
        saved, held = self.saved[framework], self._came_with[framework]
        return {name: held[saved.own[name]] for name in names if saved.own.get(name)}

    def load(self, framework: str, tensors: Mapping[str, Stored]) -> None:
        """Give a model the tensors of a file, one at a time; names that it lacks are passed over."""
        saved, side = self.saved[framework], self.pair.side(framework)
        for name, tensor in tensors.items():
            own = saved.own.get(name)
            if own and saved.info.tensors[own].shape == tensor.shape:
                side.load({own: tensor.values()})

    def stir(self) -> None:
        """Move PyTorch's constant weights (biases of 0, norms of 1): these hide faults."""
        side, saved = self.pair.side("torch"), self.saved["torch"]
        source = np.random.default_rng(_SEED)
        for name, array in side.values().items():
            tensor = saved.info.tensors[name]
            constant = array.size > 0 and bool((array == array.flat[0]).all())
            if tensor.is_float and tensor.is_persistent and array.dtype.kind == "f" and constant:
                noise = source.uniform(0.01, 0.1, array.shape)
                side.load({name: array * (1 + noise) + 0.1 * noise})

    def derive(self) -> tuple[WeightMap, dict[str, str]]:
        """Pair the models as `align` does, with the weights that PyTorch's has now; return the map.

        Beside it: the tensors without a counterpart. Raises ModelFailure if PyTorch's model fails.
        """
        runner = self._pair()
        ours, theirs = find_idle(runner)
        if ours or theirs:
            names = ", ".join([*ours, *(f"{name} (Paddle)" for name in theirs)])
            text = f"left out, since the outputs do not depend on it and it has no counterpart: {names}"
            self.remarks.append(text)
        sides = self.saved["torch"], self.saved["paddle"]
        return derive_map(runner.pairing, *sides, (ours, theirs))

    def compare(self, torch: Mapping[str, Stored], paddle: Mapping[str, Stored]) -> Agreement:
        """Run each model with its own file's weights; say how far they are apart."""
        paired = self._pair()  # first: it gives both models weights of its own
        self.load("torch", torch)
        self.load("paddle", paddle)
        runner = replace(paired, weights=self.pair.torch.values())
        try:
            expected = runner.run_reference(False, keep="outputs")
            actual = runner.run_port(False, "outputs", backward=False)
        except ModelFailure as error:
            return Agreement(np.inf, False, str(error))
        gaps = compare_outputs(runner.pairing, expected, actual, Noise(runner, False))
        if not gaps:
            return Agreement(np.inf, False, "no output of one has a counterpart in the other")
        worst = max((found for _, found in gaps), key=lambda found: found.exceed)
        passed = all(found.ok for _, found in gaps)
        return Agreement(worst.relative, passed, worst.words)

    def _pair(self) -> Runner:
        if self._runner is None:
            findings = Findings()
            pair = self.pair
            self._runner = pair_models(
                pair.torch, pair.paddle, pair.inputs, "float64", pair.name_map, True, findings
            )
            self.remarks += findings.report.remarks
        return self._runner


@contextmanager
def work_with(pair: ModelPair) -> Iterator[Models]:
    """Bring both models to float64, also where they ask for float32; afterwards they are as before."""
    models = Models(pair)
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of libraries about themselves
        stack.enter_context(pair.torch.working("float64", throughout=True))
        stack.enter_context(pair.paddle.working("float64", throughout=True))
        yield models
