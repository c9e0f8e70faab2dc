"""Finds the state dict in what a training script saved: wrapped, prefixed, with copies beside it."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from reprod_align.base.text import shorten
from reprod_align.errors import WeightsError
from reprod_align.weights import Opaque, Stored, name_all

_COPIES = ("ema", "swa", "averaged", "teacher", "shadow", "average")
"""words in the names of copies, which are taken only where they are asked for"""
_SHOWN = 8


@dataclass(frozen=True)
class CheckpointState:
    """A state dict in a checkpoint."""

    label: str
    """where it stands: "model", "state_dict.module"; "" for the top"""
    content: Mapping[str, object]
    beside: tuple[str, ...] = ()
    """tensors of the same dict without the prefix; copies are not counted"""

    @property
    def tensors(self) -> dict[str, Stored]:
        """Its tensors by name."""
        return {name: held for name, held in self.content.items() if isinstance(held, Stored)}


def choose_state(
    content: Mapping[str, object], wanted: Collection[str], select: str = ""
) -> CheckpointState:
    """Return the state dict whose names are the wanted ones, prefixes taken off.

    select: where it stands, a prefix included ("ema.module"). Copies, such as an EMA's, are taken only
    if they are selected. Raises WeightsError if none fits, or several do.
    """
    groups = list(_list_groups(content, ""))
    states = [state for group in groups for state in _list_prefixed(group, wanted)]
    if select:
        chosen = [s for s in states if s.label == select and _count(s, wanted)]
        chosen = chosen or [s for s in states if s.label.startswith(f"{select}.")]
    else:
        chosen = [state for state in states if not _is_copy(state.label, states)]
    counted = {state.label: _count(state, wanted) for state in chosen}
    best = max(counted.values(), default=0)
    fitting = [state for state in chosen if counted[state.label] == best]
    if not best:
        held = ", ".join(repr(group.label) for group in groups if group.tensors) or "no tensors"
        names = shorten(list(next((g.tensors for g in groups if g.tensors), {})), 4)
        raise WeightsError(
            f"{'no tensor of ' + select if select else 'no tensor of the checkpoint'} has the name of "
            f"one of the model's: it holds {held} ({names}), the model {shorten(list(wanted), 4)}"
        )
    if len(fitting) > 1:
        labels = ", ".join(repr(state.label) for state in fitting)
        raise WeightsError(f"several state dicts fit the model: {labels}: choose one with --select")
    _require_sound(fitting[0], wanted)
    return fitting[0]


def _list_groups(content: Mapping[str, object], label: str) -> Iterator[CheckpointState]:
    """Yield the dicts in dicts that hold something other than dicts."""
    named = name_all(content, label or "the checkpoint")
    yield CheckpointState(
        label, {n: held for n, held in named.items() if not isinstance(held, Mapping)}
    )
    for name, held in named.items():
        if isinstance(held, Mapping):
            yield from _list_groups(held, f"{label}.{name}".lstrip("."))


def _list_prefixed(group: CheckpointState, wanted: Collection[str]) -> Iterator[CheckpointState]:
    """Yield the state as it is, and under each prefix that leaves a wanted name."""
    yield group
    prefixes: Counter[str] = Counter()
    for name in group.tensors:
        at = name.find(".")
        while at >= 0:
            if name[at + 1 :] in wanted:
                prefixes[name[:at]] += 1
            at = name.find(".", at + 1)
    most = max(prefixes.values(), default=0)
    for prefix, count in prefixes.items():
        if 2 * count > most:  # others are names that end alike
            inner = {
                name.removeprefix(f"{prefix}."): held
                for name, held in group.content.items()
                if name.startswith(f"{prefix}.")
            }
            beside = [name for name in group.tensors
                      if not name.startswith(f"{prefix}.") and not _is_named_as_copy(name)]  # fmt: skip
            yield CheckpointState(f"{group.label}.{prefix}".lstrip("."), inner, tuple(beside))


def _is_copy(label: str, states: Collection[CheckpointState]) -> bool:
    """Tell whether a state dict is named as a copy, and another is not."""
    return _is_named_as_copy(label) and any(
        not _is_named_as_copy(other.label) for other in states if other.tensors
    )


def _is_named_as_copy(label: str) -> bool:
    words = label.lower().replace("_", ".").replace("-", ".").split(".")
    return any(word in _COPIES for word in words)


def _count(state: CheckpointState, wanted: Collection[str]) -> int:
    return sum(name in state.content for name in wanted)


def _require_sound(state: CheckpointState, wanted: Collection[str]) -> None:
    """Raise WeightsError for a tensor that is not dense, and for booleans other than 0 and 1."""
    for name in wanted:
        held = state.content.get(name)
        if isinstance(held, Opaque):
            raise WeightsError(f"{name} is a {held.name}, not a dense tensor")
        if isinstance(held, Stored) and held.dtype == "bool":
            try:
                held.read()
            except WeightsError as error:
                raise WeightsError(f"{name}: {error}") from error
