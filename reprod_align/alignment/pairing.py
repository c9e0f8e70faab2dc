"""What stands for what in the two models: made once by `pair_models`, never changed afterwards."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from reprod_align.alignment.audit import SettingDifference, compare_settings
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.base.text import parent
from reprod_align.match import (
    Evidence,
    Match,
    TensorPair,
    find_certain_places,
    is_same_activation,
    pair_modules,
)
from reprod_align.model.backward import pair_outputs
from reprod_align.model.settings import FUSED_SIZES
from reprod_align.model.side import ModelInfo
from reprod_align.model.store import keep_copy
from reprod_align.model.trace import LeafPair, Trace

_ROUNDED = 1e-6  # relative: a constant that went through float32


@dataclass(frozen=True)
class Pairing:
    """The counterparts of tensors, modules, outputs and random draws."""

    torch: ModelInfo
    paddle: ModelInfo
    match: Match
    """the tensors"""
    loaded: Sequence[TensorPair]
    """those of `match.pairs` whose PyTorch values the port is given"""
    modules: Mapping[str, str]
    """PyTorch's name -> Paddle's"""
    places: Mapping[str, str]
    """Paddle's module -> PyTorch's: where both sides draw the same random numbers"""
    outputs: Sequence[LeafPair] | None = None
    """of the models themselves; None if the port did not run"""
    activations: Mapping[str, str] = field(default_factory=dict)
    """PyTorch's layers to which Paddle's add an activation -> the module that applies it, "" if code may"""

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The modules the other way round: Paddle's name -> PyTorch's."""
        return {theirs: ours for ours, theirs in self.modules.items()}

    def find_around(self, path: str) -> str:
        """Return PyTorch's name of one of Paddle's modules, or of the innermost around it that has one."""
        while path and path not in self.names:
            path = parent(path)
        return self.names.get(path, "")

    @property
    def compared_outputs(self) -> frozenset[str] | None:
        """PyTorch's outputs that have a counterpart; None if that is not known."""
        return None if self.outputs is None else frozenset(pair.expected for pair in self.outputs)

    def output_pairs(self, reference: Trace, port: Trace) -> list[LeafPair]:
        """Return the pairs of outputs of two runs: the same pairs in every mode."""
        return pair_outputs(reference.outputs, port.outputs, self.outputs or ())

    def convert(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return PyTorch's tensors (or gradients, or updates) as Paddle's tensors hold them.

        A tensor with several names is found under any of them, and returned under all.
        """
        made: dict[str, Array] = {}
        for pair in self.loaded:
            found = {name: self.torch.find(arrays, name) for name in pair.torch}
            known = {name: array for name, array in found.items() if array is not None}
            if len(known) == len(found):
                made.update({name: keep_copy(a) for name, a in pair.to_paddle(known).items()})
        return self.paddle.spread(made)

    @cached_property
    def loaded_names(self) -> frozenset[str]:
        """Paddle's tensors that are given PyTorch's values, by every name."""
        loaded = (name for pair in self.loaded for name in pair.paddle)
        return frozenset(other for name in loaded for other in self.paddle.other_names(name))

    @cached_property
    def distinct(self) -> Sequence[TensorPair]:
        """The pairs of tensors, each pair once: two tied tensors may be paired under two names."""
        pairs: dict[tuple[tuple[str, ...], tuple[str, ...]], TensorPair] = {}
        for pair in self.match.pairs:
            ours = tuple(self.torch.tensors[name].tie for name in pair.torch)
            theirs = tuple(self.paddle.tensors[name].tie for name in pair.paddle)
            pairs.setdefault((ours, theirs), pair)
        return list(pairs.values())

    @cached_property
    def _fused(self) -> frozenset[str]:
        """PyTorch's modules whose parameters are divided in another way in Paddle."""
        apart = (pair for pair in self.match.pairs if len(pair.torch) != len(pair.paddle))
        return frozenset(parent(name) for pair in apart for name in pair.torch)

    def settings_differ(self, ours: str, theirs: str) -> bool:
        """Tell whether a pair of modules is known to be set differently."""
        if ours not in self.torch.modules or theirs not in self.paddle.modules:
            return False
        return any(difference.conclusive for difference in self.compare_settings(ours, theirs))

    def compare_settings(self, ours: str, theirs: str) -> list[SettingDifference]:
        """Return the settings in which a pair of modules differs."""
        fused = ours in self._fused
        found = compare_settings(self.torch.modules[ours], self.paddle.modules[theirs], fused)
        if (ours, theirs) in self._laid_as_torch:  # its sizes are read off the weight's shape
            found = [difference for difference in found if difference.name not in FUSED_SIZES]
        applied = self.activations.get(ours)
        return found if applied is None else [*self._with_activation(applied, found)]

    def _with_activation(
        self, applied: str, found: Sequence[SettingDifference]
    ) -> Iterator[SettingDifference]:
        """Yield the differences of a layer that has an activation built in, beside the one `applied`."""
        for one in found:
            known = self.torch.modules[applied].class_name if applied in self.torch.stock else ""
            if one.name != "act":
                yield one
            elif not applied:
                text = f"act: {one.paddle_value!r} in {PORT} (no fault where {REFERENCE}'s code applies it)"
                yield replace(one, message=text, conclusive=False)
            elif known and not is_same_activation(known, one.paddle_value):
                text = f"act: {applied} is {known} in {REFERENCE}, {PORT} {one.paddle_value!r}"
                yield replace(one, torch_value=known, message=text)

    @cached_property
    def _laid_as_torch(self) -> frozenset[tuple[str, str]]:
        """Modules whose matrix lies in Paddle as it does in PyTorch."""
        return frozenset(
            (parent(pair.torch[0]), parent(pair.paddle[0]))
            for pair in self.match.pairs
            if not pair.is_fused and not pair.transposed[0] and len(pair.paddle_shapes[0]) == 2
        )

    @cached_property
    def split_ties(self) -> Sequence[tuple[str, str, str]]:
        """Trained parameters that are another one's second name in PyTorch alone.

        Each with another name of it, and with Paddle's name of the parameter. Where Paddle ties some of
        several names, the others are at fault; of two, the one that PyTorch's model holds later: what is
        made first can't be given the other.
        """
        known: list[tuple[str, str, str, str]] = []
        for pair in self.match.pairs:
            first, second = self.torch.tensors[pair.torch[0]], self.paddle.tensors[pair.paddle[0]]
            trained = first.is_trainable and second.is_trainable
            if trained and len(pair.torch) + len(pair.paddle) == 2:
                known.append((first.tie, second.tie, first.name, second.name))
        held = {name: number for number, name in enumerate(self.torch.tensors)}
        known.sort(key=lambda one: held[one[2]])
        counts = Counter((tie, own) for tie, own, *_ in known)
        kept: dict[str, tuple[str, str]] = {}
        for tie, own, ours, _ in known:
            if tie not in kept or counts[tie, own] > counts[tie, kept[tie][0]]:
                kept[tie] = own, ours
        return [
            (ours, kept[tie][1], theirs) for tie, own, ours, theirs in known if own != kept[tie][0]
        ]

    @cached_property
    def untied(self) -> frozenset[str]:
        """PyTorch's names of all parameters that `split_ties` concerns."""
        tensors = self.torch.tensors
        ties = {tensors[ours].tie for ours, _, _ in self.split_ties}
        return frozenset(tensor.name for tensor in tensors.values() if tensor.tie in ties)

    def is_frozen_on_one_side(self, ours: str, theirs: str) -> bool:
        """Tell whether a paired tensor is trained by one framework and not by the other."""
        first, second = self.torch.tensors[ours], self.paddle.tensors[theirs]
        return first.is_trainable != second.is_trainable

    def describe_frozen(self, ours: str, theirs: str) -> str:
        """Return on which side a paired tensor is not trained, and by what; "" if on none or on both."""
        first, second = self.torch.tensors[ours], self.paddle.tensors[theirs]
        if not self.is_frozen_on_one_side(ours, theirs):
            return ""
        tensor, side, other = (
            (second, PORT, REFERENCE) if first.is_trainable else (first, REFERENCE, PORT)
        )
        frozen = side.choose("requires_grad=False", "stop_gradient=True")
        how = f"frozen in {side} ({frozen})" if tensor.is_parameter else f"a buffer in {side}"
        return f"{how}, trained in {other}"

    @cached_property
    def one_sided(self) -> Sequence[tuple[str, str]]:
        """The paired tensors, by PyTorch's and Paddle's names, that one framework alone trains."""
        every = ((pair.torch[0], other) for pair in self.distinct for other in pair.paddle)
        return [names for names in every if self.is_frozen_on_one_side(*names)]

    def may_train(self, pair: TensorPair, theirs: str) -> bool:
        """Tell whether a tensor of Paddle's, or what it is made of in PyTorch, can get a gradient."""
        trained = any(self.torch.tensors[name].is_trainable for name in pair.torch)
        return trained or self.paddle.tensors[theirs].is_parameter


def make_pairing(found: Match, torch: Evidence, paddle: Evidence) -> Pairing:
    """Return the pairing that follows from the pairs of tensors."""
    modules = pair_modules(found, torch, paddle)
    loaded = [pair for pair in found.pairs if _is_loaded(pair, torch, paddle)]
    places = find_certain_places(modules, torch, paddle)
    return Pairing(torch.info, paddle.info, found, loaded, modules, places)


def _is_loaded(pair: TensorPair, torch: Evidence, paddle: Evidence) -> bool:
    """Tell whether the port is given PyTorch's values of this pair.

    It is where state dicts hold the tensors. A constant outside the state dict keeps Paddle's own
    values, unless they are PyTorch's but for float32 rounding: then both sides compute with the same.
    """
    ours = [torch.info.tensors[name] for name in pair.torch]
    theirs = [paddle.info.tensors[name] for name in pair.paddle]
    if all(tensor.is_persistent for tensor in (*ours, *theirs)):
        return True
    made = pair.to_paddle(torch.values)
    return all(gap(array, paddle.values[name], _ROUNDED).ok for name, array in made.items())
