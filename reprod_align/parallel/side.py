"""The port of a parallel run as one side of a pair: its ranks' parts are put together to whole tensors."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Unpack

from reprod_align.base.blocks import Array
from reprod_align.errors import ReprodError
from reprod_align.match import Shape
from reprod_align.model import (
    NO_PINS,
    Call,
    IdleLines,
    Inputs,
    Keep,
    Leaf,
    ModelInfo,
    ModuleSettings,
    Pin,
    Pins,
    Projection,
    RunOptions,
    Side,
    TensorInfo,
    Trace,
    TrainingStep,
    name_inputs,
)
from reprod_align.pair.remote import FUNCTIONS, METHODS, PROPERTIES
from reprod_align.parallel import MEAN, MOST_PADDING, Mesh, Placement, choose, differ, list_batched
from reprod_align.parallel.launch import Asked, OpenedPort, Ranks
from reprod_align.randomness import KeyedDraws

import numpy as np

_IF_GONE: Final[Mapping[str, Any]] = {
    "remarks": (),
    "asked_float32": False,
    "keeps_float32": False,
    "read_tables": {},
    "set_tables": None,
    "rounding_modules": [],
    "saved_names": {},
    "find_classes": [],
    "read_attributes": {},
    "find_maker": None,
    "watch_lines": None,
    "find_idle_lines": IdleLines(),
    "rates": [],
}
"""what a report on ranks that are gone goes on with; any other question raises then"""
_MAY_BE_PADDED: Final = ("vocabulary", "column", "cut")
LeafKey = tuple[str, int, str, str]
"""module, call, "inputs" or "outputs", leaf"""


@dataclass
class Overheard:
    """The reference, and the shapes of every tensor that was seen in its runs, their axes sorted."""

    side: Side
    shapes: set[Shape] = field(default_factory=set)
    tensors: set[Shape] = field(default_factory=set)
    """of its parameters and buffers, as they are"""

    def __getattr__(self, name: str) -> Any:
        """Return what the side has."""
        return getattr(self.side, name)

    def describe(self) -> ModelInfo:
        """Return what the side does."""
        info = self.side.describe()
        self.tensors |= {tensor.shape for tensor in info.tensors.values()}
        return info

    def run(self, *arguments: Any, **options: Any) -> Trace:
        """Run the side, and listen."""
        trace = self.side.run(*arguments, **options)
        for call in trace.calls:
            for leaf in (*call.inputs.values(), *call.outputs.values()):
                self.shapes.add(tuple(sorted(leaf.array.shape)))
        return trace


@dataclass
class Disagreement:
    """Ranks of one group hold different numbers where they should hold the same."""

    what: str
    """"gradient", "tensor", "output", "loss", "rate" or "stream" """
    name: str
    axis: str
    ranks: tuple[int, int]
    step: int | None = None
    """of training; None: in a single pass"""
    parts: Sequence[Array] = ()


@dataclass
class Placed:
    """What each rank gave at a place in a run on the reference's numbers, and how it goes together."""

    parts: Sequence[Array]
    gradients: Sequence[Array | None]
    placement: Placement


class ParallelSide:
    """A `Side` whose model runs on several ranks. What the ranks disagree on is in `apart`."""

    def __init__(
        self,
        ranks: Ranks,
        file: str,
        overheard: Overheard,
        mesh: Mesh,
        fused: Mapping[str, Sequence[int]] | None = None,
        fault: str = "",
    ) -> None:
        """Open a pair file on every rank.

        overheard: the reference, whose shapes tell how parts go together. mesh: with the order in
        which the replicas see the examples. fused: tensors by the ends of their names, each with the
        sizes of the pieces that are cut among the ranks one by one. fault: what is planted there.
        """
        self._ranks, self._overheard, self.mesh = ranks, overheard, mesh
        self._fused = dict(fused or {})
        opened: list[OpenedPort] = _require(ranks.ask("open", file, mesh.order, fault))
        self._opened = opened[0]
        self.planted, self.no_place = self._opened.planted, self._opened.no_place
        self.name = self._opened.name
        self.apart: list[Disagreement] = []
        self.replicas: Sequence[Inputs] = ()
        """what each replica is given; () where there is one"""
        self.gradients: list[dict[str, Array]] = []
        """of the last run, as each rank had them"""
        self.placed: dict[bool, dict[LeafKey, Placed]] = {False: {}, True: {}}
        """of the last run in each mode that was given the reference's numbers"""
        self._kept: dict[LeafKey, Placed] | None = None
        self.placements: dict[str, Placement] = {}
        """how each tensor lies on the ranks"""
        self._local: ModelInfo | None = None

    # ------------------------------------------------------------------ what it is

    def __getattr__(self, name: str) -> Any:
        """Return what `Side` has under this name, as the first rank gives it: it is the same on all."""
        if name in FUNCTIONS:  # None where the file defines none
            return name if name in self._opened.functions else None
        if name in PROPERTIES:
            return self._ask_first(name)
        if name in METHODS:
            return partial(self._ask_first, name)
        raise AttributeError(name)

    def _ask_first(self, name: str, *arguments: Any, **options: Any) -> Any:
        if self._ranks.broken is not None and name in _IF_GONE:
            return copy(_IF_GONE[name])
        return _require(self._ranks.ask(name, *arguments, **options))[0]

    # ------------------------------------------------------------------ its tensors

    def describe(self) -> ModelInfo:
        """Return the model's modules with their settings, and its tensors, whole."""
        if self._local is None:
            self._local = _require(self._ranks.ask("describe"))[0]
        info = self._local
        self.placements = {name: self._place(tensor) for name, tensor in info.tensors.items()}
        tensors = {
            name: replace(tensor, shape=self.placements[name].enlarge(tensor.shape, self.mesh))
            for name, tensor in info.tensors.items()
        }
        modules = {path: self._widen(known, path, tensors) for path, known in info.modules.items()}
        return ModelInfo(modules, tensors, info.stock)

    def _place(self, tensor: TensorInfo) -> Placement:
        axis, kind = self._opened.shards.get(tensor.name, (None, "replicated"))
        if axis is None or self.mesh.tp == 1:
            return Placement()
        pieces = next((tuple(p) for end, p in self._fused.items() if tensor.name.endswith(end)), ())
        placement = Placement(None, axis, pieces)
        whole = placement.enlarge(tensor.shape, self.mesh)
        length = self._find_length(whole, axis, kind) if kind in _MAY_BE_PADDED else None
        return replace(placement, length=length, padded=whole[axis] if length else 0)

    def _find_length(self, whole: Shape, axis: int, kind: str) -> int | None:
        """Return how long an axis is in the reference, if the vocabulary is padded here; None if not."""
        turned = whole if kind == "vocabulary" else whole[::-1]
        at = axis if kind == "vocabulary" else len(whole) - 1 - axis
        known, held = self._overheard.tensors, self._local
        assert held is not None
        vocabularies = {
            held.tensors[name].shape[cut or 0] * self.mesh.tp
            for name, (cut, is_a) in self._opened.shards.items()
            if is_a == "vocabulary" and name in held.tensors
        }
        if turned in known or len(whole) > 2 or whole[axis] not in vocabularies:
            return None
        rest = turned[:at] + turned[at + 1 :]
        lengths = (shape[at] for shape in known
                   if len(shape) == len(turned) and shape[:at] + shape[at + 1 :] == rest)  # fmt: skip
        return max((n for n in lengths if 0 < whole[axis] - n < MOST_PADDING), default=None)

    def _widen(
        self, known: ModuleSettings, path: str, tensors: Mapping[str, TensorInfo]
    ) -> ModuleSettings:
        """Return the settings of the whole layer, given those of a rank's part of it."""
        if path not in self._opened.borders:
            return known
        weight = tensors[f"{path}.weight" if path else "weight"].shape
        if known.kind == "Embedding":
            values: dict[str, Any] = {"num_embeddings": weight[0], "embedding_dim": weight[1]}
        else:
            has_bias = (f"{path}.bias" if path else "bias") in tensors
            values = {"in_features": weight[0], "out_features": weight[1], "bias": has_bias}
        return replace(known, values=values)

    def read_parts(self) -> dict[str, list[Array]]:
        """Return what each rank holds of every tensor, as it came."""
        held: list[dict[str, Array]] = _require(self._ranks.ask("read_given"))
        return {name: [part[name] for part in held] for name in held[0]}

    def values(self) -> dict[str, Array]:
        """Return every parameter and buffer by name."""
        return self._gather("values")

    def read_given(self) -> Mapping[str, Array]:
        """Return every parameter and buffer as it came."""
        return self._gather("read_given")

    def _gather(self, question: str) -> dict[str, Array]:
        if not self.placements:
            self.describe()
        return self._gather_tensors(_require(self._ranks.ask(question)))

    def load(self, values: Mapping[str, Array]) -> None:
        """Give the named tensors these values, each rank its part."""
        self._give("load", values)

    def set_buffers(self, values: Mapping[str, Array]) -> None:
        """Give the named buffers these values."""
        self._give("set_buffers", values)

    def _give(self, name: str, values: Mapping[str, Array]) -> None:
        questions: list[Any] = [(name, (self._scatter(values, rank),), {}) for rank in self._every]
        _require(self._ranks.ask_each(questions))

    def rest(self) -> None:
        """Let go of copies: the ranks have none to spare."""

    @property
    def _every(self) -> range:
        return range(self.mesh.size)

    def _scatter(self, values: Mapping[str, Array], rank: int) -> dict[str, Array]:
        return {n: self.placements[n].scatter(a, self.mesh, rank) for n, a in values.items()}

    def _gather_tensors(
        self, parts: Sequence[Mapping[str, Array]], what: str = "", step: int | None = None
    ) -> dict[str, Array]:
        """Return whole tensors; what: "" where ranks need not agree on what they all hold."""
        whole = {}
        for name in parts[0]:
            held = [part[name] for part in parts if name in part]
            if len(held) < self.mesh.size:
                continue
            placement = self.placements[name]
            for axis, ranks in placement.find_apart(held, self.mesh) if what else ():
                self.apart.append(Disagreement(what, name, axis, ranks, step, held))
            whole[name] = placement.gather(held, self.mesh)
        return whole

    def mend_kernels(self, mends: bool) -> list[str]:
        """Return nothing: PyTorch's side alone mends kernels."""
        return []

    # ------------------------------------------------------------------ working state

    @contextmanager
    def working(
        self, dtype: str | None, throughout: bool = False, at_rest: bool = False
    ) -> Iterator[None]:
        """Work in `dtype`; afterwards everything is as it was."""
        _require(self._ranks.ask("start_working", dtype, throughout, False))
        try:
            yield
        finally:
            if self._ranks.broken is None:
                with suppress(ReprodError):
                    self._ranks.ask("stop_working")

    # ------------------------------------------------------------------ running

    def run(
        self,
        inputs: Inputs,
        training: bool,
        draws: KeyedDraws,
        keep: Keep = "outputs",
        objective: Projection | None = None,
        **how: Unpack[RunOptions],
    ) -> Trace:
        """Run forward and backward once on every rank; see `Side.run`. Nothing is deferred."""
        pins = how.pop("pins", NO_PINS)
        how.pop("defer", None)
        asks, pinned = objective is not None, pins is not NO_PINS
        questions = [
            ("run", (self._cut_inputs(inputs, rank), training, draws, keep, asks, pinned), how)
            for rank in self._every
        ]
        traces = self._converse(questions, pins, objective)
        self._kept = self.placed[training] if pinned and keep == "all" else None
        trace = self._join(traces, keep, inputs, objective is None)
        if draws.asked and training:
            self._check_streams()
        return trace

    def train(
        self,
        inputs: Inputs,
        steps: int,
        draws: Sequence[KeyedDraws],
        objective: Projection | None = None,
        gradients: Sequence[Mapping[str, Array]] | None = None,
        rates: Sequence[Sequence[float]] | None = None,
    ) -> list[TrainingStep]:
        """Train for `steps` steps on every rank."""
        questions: list[Any] = []
        for rank in self._every:
            own = None if gradients is None else [self._scatter(g, rank) for g in gradients]
            batch, asks = self._cut_inputs(inputs, rank), objective is not None
            questions.append(("train", (batch, steps, list(draws), asks, own, rates), {}))
        taken: list[list[TrainingStep]] = self._converse(questions, NO_PINS, objective)
        return [
            self._join_steps(number, step) for number, step in enumerate(zip(*taken, strict=True))
        ]

    def _cut_inputs(self, inputs: Inputs, rank: int) -> Inputs:
        replica, _ = self.mesh.coordinates(rank)
        return self.replicas[replica] if self.replicas else inputs

    def _converse(
        self, questions: Sequence[Any], pins: Pins, objective: Projection | None
    ) -> list[Any]:
        """Ask every rank to run, and answer what they ask meanwhile; return what they say at the end."""
        self._ranks.send([(name, list(given), options) for name, given, options in questions])
        while True:
            said = self._ranks.receive()
            if not all(isinstance(one, Asked) for one in said):
                return _require(said)
            asked: list[Asked] = said
            keys = {(one.topic, one.path, one.index, tuple(one.leaves)) for one in asked}
            if len(keys) > 1:
                first, other = asked[0], next(o for o in asked if o.path != asked[0].path or
                                              o.leaves.keys() != asked[0].leaves.keys())  # fmt: skip
                error = ReprodError(
                    f"the ranks run different modules: {first.path!r} and {other.path!r}"
                )
                self._ranks.send([error] * self.mesh.size)
                continue
            self._ranks.send(self._answer(asked, pins, objective))

    def _answer(
        self, asked: Sequence[Asked], pins: Pins, objective: Projection | None
    ) -> list[dict[str, Any]]:
        first = asked[0]
        which = "outputs" if first.topic == "objective" else first.topic
        leaves, placements = {}, {}
        for at, (_, differentiable) in first.leaves.items():
            place = first.path, first.index, which, at
            parts = [one.leaves[at][0] for one in asked]
            placements[at] = self._find_placement(place, parts)
            leaves[at] = Leaf(placements[at].gather(parts, self.mesh), differentiable)
        if first.topic == "objective":
            assert objective is not None
            weights = objective.weigh(leaves)
            return [{at: self.cut_gradient(w, placements[at], rank) for at, w in weights.items()}
                    for rank in self._every]  # fmt: skip
        call: Call = Call(first.path, first.index, first.parent)
        setattr(call, which, leaves)
        pinned = pins.inputs(call) if which == "inputs" else pins.outputs(call)
        return [{at: self._cut_pin(pin, placements[at], rank) for at, pin in pinned.items()}
                for rank in self._every]  # fmt: skip

    def _cut_pin(self, pin: Pin, placement: Placement, rank: int) -> Pin:
        array = None if pin.array is None else placement.scatter(pin.array, self.mesh, rank)
        gradient = pin.gradient
        if gradient is not None:
            gradient = self.cut_gradient(gradient, placement, rank)
        return Pin(array, gradient, pin.differentiable, pin.ends)

    def cut_gradient(self, gradient: Array, placement: Placement, rank: int) -> Array:
        """Return a rank's part of a gradient, scaled so that the replicas' average is the whole gradient."""
        times = self.mesh.dp if isinstance(placement.dp, int) else 1
        return placement.scatter(gradient, self.mesh, rank) * times

    def _find_placement(self, place: LeafKey, parts: Sequence[Array]) -> Placement:
        """Return how what the ranks hold at a place goes together."""
        path, _, which, at = place
        border = self._opened.borders.get(path)
        hint: int | None | str = ""
        if border is not None and (which == "outputs" or at == "0" or len(at) < 3):
            hint = border[0] if which == "inputs" else border[1]
        placement = choose(parts, self.mesh, self._overheard.shapes, hint)
        if placement.tp is not None and parts[0].ndim and not isinstance(placement.dp, str):
            return self._trim(placement, parts[0].shape)
        return placement

    def _trim(self, placement: Placement, shape: Shape) -> Placement:
        """Return the placement without the padding of the vocabulary, where the tensor has it."""
        assert placement.tp is not None
        padded = shape[placement.tp] * self.mesh.tp
        for known in self.placements.values():
            if known.length and known.padded == padded and placement.tp == len(shape) - 1:
                return replace(placement, length=known.length, padded=padded)
        return placement

    # ------------------------------------------------------------------ what the ranks did

    def _join(self, traces: Sequence[Trace], keep: Keep, inputs: Inputs, is_loss: bool) -> Trace:
        """Return one trace of whole tensors; is_loss: the scalar is the user's loss, not of parts."""
        first = traces[0]
        joined = replace(first, calls=[])
        for calls in zip(*(trace.calls for trace in traces), strict=False):
            joined.calls.append(self._join_call(calls))
        losses = [trace.loss for trace in traces]
        if all(loss is not None for loss in losses):
            joined.loss = self._average_loss([float(loss or 0.0) for loss in losses], is_loss)
        self.gradients = [dict(trace.gradients) for trace in traces]
        joined.gradients = self._gather_tensors([t.gradients for t in traces], "gradient")
        joined.buffers = self._gather_tensors([t.buffers for t in traces], "tensor")
        if first.input_gradients is not None:
            joined.input_gradients = self._join_input_gradients(traces, inputs)
        return joined

    def _average_loss(
        self, losses: Sequence[float], is_loss: bool, step: int | None = None
    ) -> float:
        parts = [np.asarray(loss, "float64") for loss in losses]
        ranks = differ(parts, self.mesh, "tp") if is_loss else None
        if ranks is not None:
            self.apart.append(Disagreement("loss", "", "tp", ranks, step, parts))
        return sum(losses[:: self.mesh.tp]) / self.mesh.dp

    def _join_call(self, calls: Sequence[Call]) -> Call:
        first = calls[0]
        joined: Call = replace(first, inputs={}, outputs={})
        if any(call.key != first.key for call in calls):
            return joined
        for which in ("inputs", "outputs"):
            for at in getattr(first, which):
                leaves = [getattr(call, which).get(at) for call in calls]
                if all(leaf is not None for leaf in leaves):
                    place = first.path, first.index, which, at
                    getattr(joined, which)[at] = self._join_leaf(place, leaves)
        return joined

    def _join_leaf(self, place: LeafKey, leaves: Sequence[Leaf]) -> Leaf:
        parts = [leaf.array for leaf in leaves]
        placement = self._find_placement(place, parts)
        gradients = [leaf.gradient for leaf in leaves]
        if self._kept is not None:
            self._kept[place] = Placed(parts, gradients, placement)
        gradient = None
        if all(one is not None for one in gradients):
            gradient = self._gather_gradient(gradients, placement)  # type: ignore[arg-type]
        whole = placement.gather(parts, self.mesh)
        return Leaf(whole, leaves[0].differentiable, gradient)

    def _gather_gradient(self, parts: Sequence[Array], placement: Placement) -> Array:
        if self.mesh.dp == 1:
            return placement.gather(parts, self.mesh)
        if isinstance(placement.dp, int):
            return placement.gather(parts, self.mesh) / self.mesh.dp
        return replace(placement, dp=MEAN).gather(parts, self.mesh)

    def _join_input_gradients(
        self, traces: Sequence[Trace], inputs: Inputs
    ) -> dict[str, Array | None]:
        batched = list_batched(name_inputs(inputs))
        joined: dict[str, Array | None] = {}
        for name in traces[0].input_gradients or {}:
            parts = [(trace.input_gradients or {}).get(name) for trace in traces]
            if any(part is None for part in parts):
                joined[name] = None
                continue
            placement = Placement(0 if name in batched and self.mesh.dp > 1 else None)
            joined[name] = self._gather_gradient(parts, placement)  # type: ignore[arg-type]
        return joined

    def _join_steps(self, number: int, steps: Sequence[TrainingStep]) -> TrainingStep:
        tensors = self._gather_tensors([step.tensors for step in steps], "tensor", number)
        gradients = self._gather_tensors([step.gradients for step in steps])
        loss = self._average_loss([step.loss for step in steps], self.loss is not None, number)
        for rank, step in enumerate(steps):
            if step.rates != steps[0].rates:
                parts = [np.asarray(one.rates[0], "float64") for one in steps]
                self.apart.append(Disagreement("rate", "", "", (0, rank), number, parts))
                break
        return TrainingStep(loss, steps[0].rates, gradients, tensors, steps[0].drawn)

    def _check_streams(self) -> None:
        """Note draws for which ranks use other random streams than they should."""
        streams = _require(self._ranks.ask("streams"))
        for drawn in zip(*streams, strict=False):
            path, _, is_cut, _ = drawn[0]
            for group in self.mesh.groups("tp"):
                prints = [drawn[rank][3] for rank in group]
                if len(group) > 1 and (len(set(prints)) == 1) == is_cut:
                    what = "stream shared" if is_cut else "stream apart"
                    self.apart.append(Disagreement(what, path, "tp", (group[0], group[1])))


def _require(answers: list[Any]) -> list[Any]:
    """Return the answers; raise the first error among them, with its rank."""
    for rank, answer in enumerate(answers):
        if isinstance(answer, ReprodError):
            if len({str(one) for one in answers}) > 1:
                answer.add_note(f"on rank {rank}")
            raise answer
    return answers
