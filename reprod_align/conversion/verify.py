"""Names what is wrong with weights that were converted before, tensor by tensor, and with a map."""

from collections.abc import Iterator, Mapping

from reprod_align.alignment.leftovers import find_cause
from reprod_align.conversion.plan import Loader, Plan, are_equal
from reprod_align.conversion.weight_map import WeightMap
from reprod_align.weights.stored import Array, Stored, widen
from reprod_align.weights.writing.entry import Entry

import numpy as np


def list_differences(plan: Plan, written: Mapping[str, Stored]) -> Iterator[str]:
    """Yield how a Paddle checkpoint differs from what a plan makes, bit for bit."""
    load = Loader(plan)
    for entry in plan.entries:
        held = written.get(entry.name)
        if held is not None and entry.tied_to in written:
            if not are_equal(held, written[entry.tied_to]):
                yield f"untied: {entry.name} and {entry.tied_to} are one tensor in the model"
        elif held is not None:
            yield from _compare(entry, held, load, written)
        elif not entry.tied_to:
            yield f"missing: {entry.name} {entry.shape}"
    known = {entry.name for entry in plan.entries}
    for name in sorted(written.keys() - known):
        yield f"left over: {name} {written[name].shape}, which no rule makes"


def _compare(
    entry: Entry, held: Stored, load: Loader, written: Mapping[str, Stored]
) -> Iterator[str]:
    if held.shape != entry.shape:
        turned = ": not transposed" if held.shape == entry.shape[::-1] else ""
        yield f"misshapen: {entry.name} is {held.shape}, expected {entry.shape}{turned}"
    elif held.dtype != entry.dtype:
        yield f"wrong dtype: {entry.name} is {held.dtype}, expected {entry.dtype}"
    else:
        expected = load(entry.name)
        if expected.tobytes() != held.read().tobytes():
            values = widen(expected) if entry.dtype == "bfloat16" else expected
            cause = find_cause(entry.name, values, _Values(written))
            yield f"differs: {entry.name}: {cause or _describe(values, held.values())}"


def _describe(expected: Array, actual: Array) -> str:
    apart = np.count_nonzero(expected != actual)
    return f"{apart} of {expected.size} elements differ"


class _Values(Mapping[str, Array]):
    """The tensors of a file as arrays, each read when it is asked for."""

    def __init__(self, tensors: Mapping[str, Stored]) -> None:
        self.tensors = tensors

    def __getitem__(self, name: str) -> Array:
        return self.tensors[name].values()

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


def list_departures(given: WeightMap, derived: WeightMap) -> Iterator[str]:
    """Yield where a map says other than the models."""
    known = {name: rule for rule in derived.rules for name in rule.torch}
    for rule in given.rules:
        expected = next((known[name] for name in rule.torch if name in known), rule)
        if rule != expected:
            yield (
                f"the map says {rule.name} -> {' + '.join(rule.paddle) or 'nothing'} ({rule.words}), the "
                f"models {expected.name} -> {' + '.join(expected.paddle) or 'nothing'} ({expected.words})"
            )
