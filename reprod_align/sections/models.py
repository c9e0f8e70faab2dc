"""The two models of a pair that is judged in sections: made without memory, divided, filled from files.

A section can be emptied: hidden, it holds no tensors and no modules. Values are read from the files as
they are needed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from types import ModuleType
from typing import Any, cast

from reprod_align.alignment import Pairing, make_pairing
from reprod_align.base.blocks import Array
from reprod_align.base.text import is_within, shorten
from reprod_align.errors import ReprodError, WeightsError
from reprod_align.match import TensorPair, collect_evidence, match_models
from reprod_align.model import LocalSide, ModelInfo
from reprod_align.pair import PairSpec
from reprod_align.sections.cover import Cover, Piece, Section, Ties, is_inside
from reprod_align.sections.crossing import Crossings, ShownSettings, StandIn
from reprod_align.weights import ArraysOnDemand, Stored

import numpy as np

Forward = Callable[..., Any]
Read = Callable[[Sequence[str]], Mapping[str, Array]]
"""from names of tensors of one side to the values of those that a file holds"""


class FillableTensors:
    """Tensors of a side, with what fills them."""

    def __init__(
        self, side: LocalSide, unfilled: ModuleType, source: Read = lambda names: {}
    ) -> None:
        """Take all tensors of a side; unfilled: the backend's module of that name."""
        self.side, self.source, self._unfilled = side, source, unfilled
        self._tensors: dict[str, Any] = {}
        self._filled: list[str] = []
        for path, module in side.fw.modules(side.model):
            for role, tensor, is_parameter in side.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                self._tensors[name] = tensor
                if is_parameter:
                    self._filled.append(name)

    def choose(self, wanted: Callable[[str], bool]) -> "FillableTensors":
        """Return those whose name is wanted."""
        chosen = copy(self)
        chosen._tensors = {name: one for name, one in self._tensors.items() if wanted(name)}
        chosen._filled = [name for name in self._filled if wanted(name)]
        return chosen

    def read(self, name: str) -> Array | None:
        """Return a tensor's values, from the file or as they are; None if it has none."""
        tensor = self._tensors[name]
        found = self.source([name]).get(name)
        if found is None and self.side.fw.has_values(tensor):
            return self.side.fw.array(tensor)  # type: ignore[no-any-return]
        return found

    def fill(self) -> None:
        """Give them their values; a parameter that no file holds gets those that its layer makes."""
        for name, array in self.source([*self._tensors]).items():
            self._unfilled.fill(self._tensors[name], array)
        for name in self._filled:
            if not self.side.fw.has_values(self._tensors[name]):
                self._unfilled.fill_as_made(self._tensors[name])

    def clear(self) -> None:
        """Give the memory of the parameters back."""
        for name in self._filled:
            self._unfilled.clear(self._tensors[name])


class Shell:
    """A module that stands in a model with or without its contents."""

    def __init__(self, held: FillableTensors, path: str) -> None:
        """Take the section at `path`; held: all tensors of its side."""
        self.path, self.side = path, held.side
        self._held = held.choose(lambda name: is_within(name, path))
        self.module = dict(held.side.fw.modules(held.side.model))[path]
        self._attributes: dict[str, Any] = self.module.__dict__
        self._places: Sequence[dict[str, Any]] = held.side.fw.contents(self.module)
        self._contents = [dict(place) for place in self._places]
        self._forward = self._attributes.get("forward")

    def hide(self, forward: Forward) -> None:
        """Let the module hold nothing, and compute `forward`."""
        self._attributes["forward"] = forward
        for place in self._places:
            place.clear()

    def show(self) -> None:
        """Let the module be itself again."""
        self._attributes.pop("forward", None)
        if self._forward is not None:
            self._attributes["forward"] = self._forward
        for place, content in zip(self._places, self._contents, strict=True):
            place.clear()
            place.update(content)

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Show the module with its values in the block; afterwards it is hidden, without memory."""
        forward = self._attributes["forward"]
        self.show()
        try:
            self._held.fill()
            yield
        finally:
            self._held.clear()
            self.hide(forward)


class FileValues:
    """What a checkpoint holds of a model's tensors."""

    def __init__(self, info: ModelInfo, stored: Mapping[str, Stored], name: str) -> None:
        """Take the checkpoint's tensors. Raises WeightsError if a parameter is missing or misfits."""
        self._info, self._stored = info, stored
        missing = [t.name for t in info.tensors.values()
                   if t.is_parameter and t.is_persistent and self._find(t.name) is None]  # fmt: skip
        misfits = [f"{t.name}: {found.shape} where the model has {t.shape}"
                   for t in info.tensors.values()
                   if (found := self._find(t.name)) is not None and found.shape != t.shape]  # fmt: skip
        if missing or misfits:
            faults = [*(f"missing {one}" for one in missing), *misfits]
            raise WeightsError(f"{name} does not fit the model: {shorten(faults, 6, '; ')}")
        known = {other for tensor in info.tensors for other in info.other_names(tensor)}
        self.extra = [one for one in stored if one not in known]
        """what the checkpoint holds and the model does not"""

    def _find(self, name: str) -> Stored | None:
        known: Stored | None = self._info.find(self._stored, name)
        return known

    def __call__(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of the named tensors, as far as the checkpoint holds them."""
        found = ((name, self._find(name)) for name in names)
        return {name: stored.values() for name, stored in found if stored is not None}


class ConvertedValues:
    """PyTorch's values as Paddle's tensors hold them."""

    def __init__(self, info: ModelInfo, pairs: Sequence[TensorPair], read: FileValues) -> None:
        """Take Paddle's side, and how its tensors are paired with PyTorch's."""
        self._info, self._read = info, read
        self._pairs = {info.tensors[name].tie: pair for pair in pairs for name in pair.paddle}

    def __call__(self, names: Sequence[str]) -> dict[str, Array]:
        """Return the values of the named tensors, as far as they are paired."""
        made: dict[str, Array] = {}
        for name in names:
            tie = self._info.tensors[name].tie
            pair = self._pairs.get(tie)
            if pair is None or tie in made:
                continue
            values = self._read(pair.torch)
            if len(values) == len(pair.torch):
                converted = pair.to_paddle(values)
                made |= {self._info.tensors[n].tie: np.ascontiguousarray(a)
                         for n, a in converted.items()}  # fmt: skip
        return {name: made[tie] for name in names if (tie := self._info.tensors[name].tie) in made}


Maker = Callable[[], Any]
StoredWeights = Mapping[str, Stored]


def build_model(make: Maker, unfilled: ModuleType) -> Any:
    """Return the model that a function makes, its parameters without memory."""
    if not callable(make) or (hasattr(make, "forward") and not isinstance(make, type)):
        raise ReprodError(
            "expected a function that makes the model, so that it is made without memory, "
            f"got a {type(make).__name__}"
        )
    with unfilled.build_unfilled():
        model = make()
    unfilled.prepare_unfilled(model)
    return model


@dataclass(frozen=True)
class SectionedSide:
    """A side whose model is divided into sections, which are hidden."""

    side: LocalSide
    shells: Mapping[str, Shell]
    """by path"""
    rest: FillableTensors
    """the tensors in no section: always there"""

    @contextmanager
    def with_stand_ins(self, paths: Sequence[str], crossings: Crossings) -> Iterator[None]:
        """Let the sections at `paths` be real in the block, the others stand-ins."""
        others = {path: StandIn(self.side, crossings.get(path, ())) for path in self.shells}
        for path, stand_in in others.items():
            self.shells[path].hide(stand_in.answer)

        def begin(args: Any, kwargs: Any) -> Any:
            for stand_in in others.values():
                stand_in.begin()
            return args, kwargs

        with ExitStack() as stack:
            stack.callback(self.side.fw.before_call(self.side.model, begin).remove)
            for path in paths:
                stack.enter_context(self.shells[path].filled())
            yield


@dataclass(frozen=True)
class SectionedPair:
    """Both sides, divided alike."""

    spec: PairSpec
    """the pair as each piece is judged"""
    reference: SectionedSide
    port: SectionedSide
    pairing: Pairing
    sections: Sequence[Section]
    pieces: Sequence[Piece]
    extra: Sequence[str]
    """what PyTorch's checkpoint holds and the model does not"""

    @property
    def modules(self) -> dict[str, str]:
        """The sections: PyTorch's name -> Paddle's."""
        return {section.torch: section.paddle for section in self.sections}

    def show(self) -> None:
        """Let every section be itself again, without values."""
        for side in (self.reference, self.port):
            for shell in side.shells.values():
                shell.show()


def divide_pair(
    spec: PairSpec, weights: StoredWeights, port_weights: StoredWeights | None, limit: int
) -> SectionedPair:
    """Divide two models without memory into sections of at most `limit` parameters where they can be.

    port_weights: what Paddle's checkpoint holds; None: PyTorch's weights, converted. Raises
    WeightsError if a checkpoint does not fit its model.
    """
    from reprod_align.backends import paddle as paddle_unfilled
    from reprod_align.backends import torch as torch_unfilled

    reference, port = cast(LocalSide, spec.reference), cast(LocalSide, spec.port)
    ours, theirs = reference.describe(), port.describe()
    read = FileValues(ours, weights, "torch_weights")
    first = FillableTensors(reference, torch_unfilled, read)
    second = FillableTensors(port, paddle_unfilled)
    if port_weights is not None:
        second.source = FileValues(theirs, port_weights, "paddle_weights")
    # names and shapes pair the tensors; values are read where these leave a doubt
    torch, paddle = (
        collect_evidence(info, (), _hold_values(held, info), held.side.name)
        for held, info in ((first, ours), (second, theirs))
    )
    pairing = make_pairing(match_models(torch, paddle, spec.name_map), torch, paddle)
    if port_weights is None:
        second.source = ConvertedValues(theirs, pairing.match.pairs, read)
    callable_ones = _find_callable(reference), _find_callable(port)
    ties = Ties(ours), Ties(theirs)
    cover = Cover(*ties, pairing.match.pairs, pairing.modules, *callable_ones)
    sections = cover.choose(limit)
    if not sections:
        raise ReprodError("no module of PyTorch's model has a counterpart that holds its weights")
    return SectionedPair(
        spec,
        _divide(first, [one.torch for one in sections]),
        _divide(second, [one.paddle for one in sections]),
        pairing,
        sections,
        cover.group(sections, limit),
        read.extra,
    )


def _hold_values(held: FillableTensors, info: ModelInfo) -> ArraysOnDemand:
    """Return the values of a side's tensors; zeros where no file holds them."""

    def read(name: str) -> Array:
        found = held.read(name)
        return np.zeros(info.tensors[name].shape) if found is None else found

    return ArraysOnDemand(info.tensors, read)


def _find_callable(side: LocalSide) -> frozenset[str]:
    """Return the modules with a forward of their own."""
    inherited = side.fw.Module.forward
    return frozenset(
        path
        for path, module in side.fw.modules(side.model)
        if type(module).forward is not inherited
    )


def _divide(held: FillableTensors, paths: Sequence[str]) -> SectionedSide:
    shells = {path: Shell(held, path) for path in paths}
    held.side.settings = cast(ModuleType, ShownSettings(held.side.settings))
    rest = held.choose(lambda name: not is_inside(name, paths))
    rest.fill()
    for shell in shells.values():
        shell.hide(StandIn(held.side, ()).answer)
    return SectionedSide(held.side, shells, rest)
