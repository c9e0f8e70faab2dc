"""The two models of a pair that is judged in sections: made without memory, divided, their values found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, cast

from reprod_align.alignment.pairing import Pairing, make_pairing
from reprod_align.errors import ReprodError
from reprod_align.match import collect_evidence, match_models
from reprod_align.model.local import LocalSide
from reprod_align.model.side import ModelInfo
from reprod_align.model.trace import Array
from reprod_align.sections.cover import Cover, Piece, Section, Ties, is_inside
from reprod_align.sections.shell import Held, Shell
from reprod_align.sections.stand_in import ShownSettings, StandIn
from reprod_align.sections.stream import Crossings
from reprod_align.sections.values import ConvertedValues, FileValues
from reprod_align.weights.stored import Stored

import numpy as np

Maker = Callable[[], Any]
Weights = Mapping[str, Stored]


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
    rest: Held
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

        hook = self.side.fw.before_call(self.side.model, begin)
        shown = [self.shells[path] for path in paths]
        try:
            for shell in shown:
                shell.show()
                shell.fill()
            yield
        finally:
            hook.remove()
            for shell in shown:
                shell.clear()
                shell.hide(others[shell.path].answer)


@dataclass(frozen=True)
class SectionedPair:
    """Both sides, divided alike."""

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
    reference: LocalSide,
    port: LocalSide,
    weights: Weights,
    port_weights: Weights | None,
    limit: int,
    name_map: Mapping[str, str] | None,
) -> SectionedPair:
    """Divide two models without memory into sections of at most `limit` parameters where they can be.

    port_weights: what Paddle's checkpoint holds; None: PyTorch's weights, converted. Raises
    WeightsError if a checkpoint does not fit its model.
    """
    from reprod_align.backends.paddle import unfilled as paddle_unfilled
    from reprod_align.backends.torch import unfilled as torch_unfilled

    ours, theirs = reference.describe(), port.describe()
    read = FileValues(ours, weights, "torch_weights")
    first, second = Held(reference, torch_unfilled, read), Held(port, paddle_unfilled)
    if port_weights is not None:
        second.source = FileValues(theirs, port_weights, "paddle_weights")
    pairing = _pair(first, second, ours, theirs, name_map)
    if port_weights is None:
        second.source = ConvertedValues(theirs, pairing.match.pairs, read)
    cover = Cover(
        Ties(ours),
        Ties(theirs),
        pairing.match.pairs,
        pairing.modules,
        _find_callable(reference),
        _find_callable(port),
    )
    sections = cover.choose(limit)
    if not sections:
        raise ReprodError("no module of PyTorch's model has a counterpart that holds its weights")
    return SectionedPair(
        _divide(first, [one.torch for one in sections]),
        _divide(second, [one.paddle for one in sections]),
        pairing,
        sections,
        cover.group(sections, limit),
        read.extra,
    )


def _pair(
    first: Held,
    second: Held,
    ours: ModelInfo,
    theirs: ModelInfo,
    name_map: Mapping[str, str] | None,
) -> Pairing:
    """Pair the tensors by names and shapes; values are read where these leave a doubt."""
    torch = collect_evidence(ours, (), {}, "PyTorch")
    paddle = collect_evidence(theirs, (), {}, "Paddle")
    torch = replace(torch, values=_Values(first, ours))
    paddle = replace(paddle, values=_Values(second, theirs))
    return make_pairing(match_models(torch, paddle, name_map), torch, paddle)


class _Values(Mapping[str, Array]):
    """The values of a side's tensors, each read when it is asked for; zeros where no file holds them."""

    def __init__(self, held: Held, info: ModelInfo) -> None:
        self._held, self._info = held, info

    def __getitem__(self, name: str) -> Array:
        found = self._held.read(name)
        return np.zeros(self._info.tensors[name].shape) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._info.tensors)

    def __len__(self) -> int:
        return len(self._info.tensors)


def _find_callable(side: LocalSide) -> frozenset[str]:
    """Return the modules with a forward of their own."""
    inherited = side.fw.Module.forward
    return frozenset(
        path
        for path, module in side.fw.modules(side.model)
        if type(module).forward is not inherited
    )


def _divide(held: Held, paths: Sequence[str]) -> SectionedSide:
    shells = {path: Shell(held, path) for path in paths}
    held.side.settings = cast(ModuleType, ShownSettings(held.side.settings))
    rest = held.choose(lambda name: not is_inside(name, paths))
    rest.fill()
    for shell in shells.values():
        shell.hide(StandIn(held.side, ()).answer)
    return SectionedSide(held.side, shells, rest)
