"""What stands for what in two runs: calls of modules, their tensors, and the code around them."""

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final
from weakref import ref

from reprod_align.alignment.noise import Judge, Noise
from reprod_align.alignment.pairing import Pairing
from reprod_align.base.blocks import Array
from reprod_align.match import join_activation
from reprod_align.model.source import Which as Which
from reprod_align.model.trace import (
    Call,
    Leaf,
    LeafPair,
    Trace,
    find_unpaired,
    pair_leaves,
    sum_gradients,
)

import numpy as np

_BOTH: Final[Sequence[Which]] = ("inputs", "outputs")
Boundary = tuple[str, Which, str]
"""a module of the port, whether a tensor goes in or comes out there, and the tensor's path"""


@dataclass(frozen=True, eq=False)
class CallPair:
    """A call of the reference, and a call of the port."""

    ours: Call
    theirs: Call

    @property
    def paths(self) -> tuple[str, str]:
        """The modules called, PyTorch's and Paddle's."""
        return self.ours.path, self.theirs.path

    def leaves(self, pair: LeafPair, which: Which) -> tuple[Leaf, Leaf]:
        """Return the two inputs, or outputs, that a pair names."""
        return getattr(self.ours, which)[pair.expected], getattr(self.theirs, which)[pair.actual]


class Counterparts:
    """Which calls and tensors of the reference and the port stand for each other."""

    def __init__(self, pairing: Pairing, reference: Trace, natural: Trace) -> None:
        """Take the reference's run, and the port's own, without replaced numbers."""
        self._activations = pairing.activations
        self._calls, self._names = reference.by_key(), pairing.names
        built_in = [key for key in self._calls if self._activations.get(key[0])]
        self._calls |= {key: call for key in built_in if (call := self.find_call(reference, key))}
        ours, theirs = reference.counts(), natural.counts()
        self._called_alike = {
            path for path, name in self._names.items() if theirs[path] == ours[name]
        }
        self.names = {path: self._names[path] for path in self._called_alike}
        """the port's modules whose calls stand for those of a module of the reference: to its name"""
        self.stock = pairing.paddle.stock
        """the port's modules that are the framework's own layers"""
        self.altered = {
            path for path, name in self._names.items() if pairing.settings_differ(name, path)
        }
        """the port's modules that are set otherwise than their counterparts"""
        modules, others = pairing.torch.modules, pairing.paddle.modules
        self._torch, self._paddle = modules, others
        self._same_kind = {
            path for path, name in self._names.items()
            if modules[name].kind and modules[name].kind == others[path].kind
        }  # fmt: skip
        self.is_spoilt = _count_not_finite(natural) > _count_not_finite(reference)
        """whether the port's outputs hold NaN or infinities of its own making"""
        self._leaves: dict[tuple[int, str], tuple[ref[Call], list[LeafPair]]] = {}
        self._moved: Collection[Boundary] = frozenset()

    def without(self, moved: Collection[Boundary]) -> "Counterparts":
        """Return the same without these boundaries: the two sides draw them at different places."""
        made = copy(self)
        made._moved = {*self._moved, *moved}
        return made

    def find_call(self, run: Trace, key: tuple[str, int]) -> Call | None:
        """Return a call in a run of the reference, with the activation that the port's has built in."""
        call = run.by_key().get(key)
        applied = "" if call is None else self._activations.get(call.path, "")
        return join_activation(call, applied, run) if call is not None and applied else call

    def may_move(self, call: Call, which: Which) -> bool:
        """Tell whether the port may draw the boundary before or after a call elsewhere.

        What a layer of the framework's own takes and gives says what it is, unless it has an
        activation built in.
        """
        built_in = self._names[call.path] in self._activations and which == "outputs"
        return built_in or call.path not in self.stock or not self._paddle[call.path].kind

    def of(self, call: Call) -> CallPair | None:
        """Return the port's call with the reference's that it stands for; None if there is none."""
        if call.path not in self._called_alike:
            return None
        ours = self._calls.get((self._names[call.path], call.index))
        return None if ours is None else CallPair(ours, call)

    def classes(self, calls: CallPair) -> tuple[str, str]:
        """Return the classes of the two modules called."""
        ours, theirs = calls.paths
        return self._torch[ours].class_name, self._paddle[theirs].class_name

    def is_other_layer(self, call: Call) -> bool:
        """Tell whether the port calls a layer of the framework's own where the reference has another."""
        return call.path in self.stock and call.path not in self._same_kind

    def pair_leaves(self, calls: CallPair, which: Which) -> list[LeafPair]:
        """Return which inputs, or which outputs, of two calls stand for each other."""
        path = calls.theirs.path
        if which == "outputs" and self._activations.get(calls.ours.path) == "":
            return []  # PyTorch's code may apply the activation that the port's layer has built in
        pairs = self.fit_leaves(calls, which)
        return [pair for pair in pairs if (path, which, pair.actual) not in self._moved]

    def fit_leaves(self, calls: CallPair, which: Which) -> list[LeafPair]:
        """Return which inputs, or which outputs, of two calls fit each other by name and shape."""
        known = self._leaves.get((id(calls.theirs), which))
        if known is None or known[0]() is not calls.theirs:  # an id may be given twice
            ours, theirs = getattr(calls.ours, which), getattr(calls.theirs, which)
            in_order = calls.theirs.path in self._same_kind and len(ours) == len(theirs)
            inside = calls.theirs.parent is not None
            # not the call itself, which holds its tensors: a search for an edit runs the port 1,000 times
            known = ref(calls.theirs), pair_leaves(ours, theirs, in_order, inside)
            self._leaves[id(calls.theirs), which] = known
        return known[1]


def _count_not_finite(trace: Trace) -> int:
    arrays = [leaf.array for leaf in trace.outputs.values() if leaf.array.dtype.kind in "fc"]
    return sum(int(np.count_nonzero(~np.isfinite(array))) for array in arrays)


@dataclass(frozen=True)
class PinnedRun:
    """A run of the port on the reference's numbers, beside the reference's own run."""

    reference: Trace
    port: Trace
    counterparts: Counterparts
    noise: Noise | None = None
    """of the reference's numbers"""

    @cached_property
    def calls(self) -> list[CallPair]:
        """The port's calls that have a counterpart, in the order in which they began."""
        found = (self.counterparts.of(call) for call in self.port.calls)
        return [calls for calls in found if calls is not None]

    @cached_property
    def composites(self) -> set[int]:
        """Numbers of the port's calls in which another module is called."""
        return {call.parent for call in self.port.calls if call.parent is not None}

    @cached_property
    def comparable(self) -> set[str]:
        """The port's modules for which the reference has all numbers: what goes in, and what comes out."""
        fit = {call.path: True for call in self.port.calls}
        for call in self.port.calls:
            fit[call.path] &= self._fits(call)
        return {path for path, fits in fit.items() if fits}

    @cached_property
    def modules(self) -> dict[str, str]:
        """The port's modules whose code is their own, to PyTorch's names.

        A module of the user's that nothing compares is code of the one around it.
        """
        compared = {call.path for call in self.port.calls if self._is_compared(call)}
        known = {"", *compared, *self.counterparts.stock}
        return {path: name for path, name in self.counterparts.names.items() if path in known}

    def _is_compared(self, call: Call) -> bool:
        """Tell whether anything that a call takes or gives has a counterpart."""
        calls = self.counterparts.of(call)
        return calls is not None and any(self.pair_leaves(calls, which) for which in _BOTH)

    def _fits(self, call: Call) -> bool:
        calls = self.counterparts.of(call)
        return calls is not None and all(
            find_unpaired(getattr(calls.ours, which), getattr(call, which), pairs) is None
            for which in _BOTH
            for pairs in [self.pair_leaves(calls, which)]
        )

    def pair_leaves(self, calls: CallPair, which: Which) -> list[LeafPair]:
        """Return which inputs, or which outputs, of two calls stand for each other."""
        return self.counterparts.pair_leaves(calls, which)

    def judge_values(self, calls: CallPair, pair: LeafPair, which: Which) -> Judge:
        """Return what compares two inputs, or two outputs, by the noise of the reference's."""

        def find(run: Trace) -> Array | None:
            call = self.counterparts.find_call(run, calls.ours.key)
            leaf = None if call is None else getattr(call, which).get(pair.expected)
            return None if leaf is None else pair.to_port(leaf.array)

        return Judge(self.noise, find)

    def judge_gradients(self, calls: CallPair, pair: LeafPair, which: Which) -> Judge:
        """Return what compares the gradients of two inputs, or outputs, by the reference's noise."""
        pairs = self.pair_leaves(calls, which)

        def find(run: Trace) -> Array | None:
            call = self.counterparts.find_call(run, calls.ours.key)
            if call is None or any(one.expected not in getattr(call, which) for one in pairs):
                return None
            return pair.to_port(sum_gradients(getattr(call, which), pairs)[pair.expected])

        return Judge(self.noise, find)

    def are_counterparts(self, calls: CallPair) -> bool:
        """Tell whether two calls stand for each other."""
        found = self.counterparts.of(calls.theirs)
        return found is not None and found.ours is calls.ours

    def is_stock(self, calls: CallPair) -> bool:
        """Tell whether the port's call is one of a layer of the framework's own."""
        return calls.theirs.path in self.counterparts.stock

    def has_children(self, call: Call) -> bool:
        """Tell whether another module is called in one of the port's calls."""
        return any(self.port.calls[number] is call for number in self.composites)

    def parents(self, calls: CallPair) -> CallPair | None:
        """Return the calls in which two calls happened; None if one of them is the model's own."""
        ours, theirs = calls.ours.parent, calls.theirs.parent
        if ours is None or theirs is None:
            return None
        return CallPair(self.reference.calls[ours], self.port.calls[theirs])

    def code_around(self, calls: CallPair) -> tuple[str, str]:
        """Return the modules in whose forward code two calls stand; "" for the models themselves."""
        return self.reference.parent_path(calls.ours), self.port.parent_path(calls.theirs)

    def is_silenced(self, calls: CallPair) -> bool:
        """Tell whether one side's call alone was made where no gradient can flow, as under `no_grad`."""
        return calls.ours.graded != calls.theirs.graded

    def counterparts_around(self, calls: CallPair) -> CallPair | None:
        """Return the innermost calls around two calls that stand for each other."""
        ours, around = calls.ours, set[int]()
        while ours.parent is not None:
            ours = self.reference.calls[ours.parent]
            around.add(id(ours))
        theirs = calls.theirs
        while theirs.parent is not None:
            theirs = self.port.calls[theirs.parent]
            found = self.counterparts.of(theirs)
            if found is not None and id(found.ours) in around:
                return found
        return None


def find_code_with(
    run: PinnedRun, calls: CallPair, ours: Leaf, theirs: Leaf, which: Which
) -> tuple[str, str]:
    """Return the modules whose code made a value that two calls take ("inputs"), or uses one they give.

    A module without a counterpart may pass a value on by itself. In a pair of modules both must pass
    it in, or the port's alone one that PyTorch's never takes; what a pair gives is used by its own code.
    """
    around = run.parents(calls)
    other = which == "inputs" and not np.array_equal(ours.array, theirs.array)
    while around is not None:
        if other and run.are_counterparts(around) and _holds(around.theirs, which, ours):
            break  # it has what is due, and hands on something else
        passed = _holds(around.ours, which, ours), _holds(around.theirs, which, theirs)
        foreign = passed[1] and not _holds(around.ours, which, theirs)
        handed_in = which == "inputs" and (all(passed) or foreign)
        enough = handed_in or not run.are_counterparts(around)
        if not any(passed) or not enough:
            break
        calls = CallPair(
            around.ours if passed[0] else calls.ours, around.theirs if passed[1] else calls.theirs
        )
        around = run.parents(calls)
    return run.code_around(calls)


def _holds(call: Call, which: Which, leaf: Leaf) -> bool:
    """Tell whether a call, not the model's own, has this value among its inputs or outputs."""
    return call.parent is not None and any(
        value.differentiable == leaf.differentiable and np.array_equal(value.array, leaf.array)
        for value in getattr(call, which).values()
    )
