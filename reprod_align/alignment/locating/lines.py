"""Names the two lines of source at a fault: where the user's code first computes something else.

The modules at fault are run once more on each side with every call of their own code recorded; the
port gets the reference's numbers, as when the fault was found.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from reprod_align.alignment.lines.composites import write_out
from reprod_align.alignment.lines.construction import find_deciding, find_settings
from reprod_align.alignment.lines.divergence import (
    Difference,
    find_cut,
    find_difference,
    find_mask_maker,
    find_places,
    hides_otherwise,
    is_scaling,
)
from reprod_align.alignment.lines.graph import KnownValues
from reprod_align.alignment.lines.origin import describe_difference, find_handing, find_origin
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun, Which
from reprod_align.alignment.locating.experiment import Experiment, Table
from reprod_align.alignment.locating.fault import Fault, compare, rounding_of
from reprod_align.alignment.locating.faults import find_resized_input
from reprod_align.alignment.locating.pinning import run_again
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.text import ancestors, is_within, last_part, parent
from reprod_align.model.side import ModelFailure
from reprod_align.model.source import Operation, SourceLine, Wanted, find_consumer
from reprod_align.model.source.making import find_held
from reprod_align.model.source.parsing import find_decision, list_targets
from reprod_align.model.trace import Call, Trace
from reprod_align.randomness import CallKey

_RELATIVE = {"float64": 1e-9, "float32": 1e-4}
"""how far equal values may be apart: as in the search for the module"""
_WIDEST = 4  # modules around each other whose code is searched
_ALL = 1_000


@dataclass(frozen=True)
class Lines:
    """The two lines of a finding, and the difference between them in words."""

    torch: SourceLine | None = None
    paddle: SourceLine | None = None
    words: str = ""
    idle: str = ""
    """which module the port never calls: it is said where no edit says more"""
    remedy: str = ""
    """what made the fault go away, where it is more than the difference of the two lines"""
    is_open: bool = False
    """whether a mask that the calls take, made elsewhere, may be what differs"""
    is_sure: bool = False
    """whether the port's line is the one that differs: its call is PyTorch's, or takes another value"""
    first: Literal["condition", "mask", ""] = ""
    """the kind of edit that is the likeliest: of the condition around a call that PyTorch does not make, or
    of a mask that hides by no number"""
    call: SourceLine | None = None
    """where the port's call is written, which `paddle` may only give a number"""
    is_proven: bool = False
    """whether a run in which it is changed has shown that the fault is gone"""
    table: Table | None = None
    """what a module holds, where that is wrong"""


@dataclass(frozen=True, eq=False)
class _Target:
    """A wrong value, and which call takes it: a child's, or the module's own, which returns it."""

    keys: tuple[CallKey, CallKey]
    """PyTorch's and Paddle's"""
    which: Which
    expected: Sequence[Array]
    wrong: Array


class LineFinder:
    """Finds the lines for the faults of one pass; both sides are run when the first is asked for."""

    def __init__(
        self,
        runner: Runner,
        training: bool,
        run: PinnedRun,
        faults: Iterable[Fault],
        experiment: Experiment,
    ):
        """run: the port's run on the reference's numbers in which the faults were found."""
        self._runner, self._training, self._run = runner, training, run
        self._experiment = experiment
        faults = list(faults)
        self._scopes = {id(fault): _find_scope(fault, run) for fault in faults}
        self._shown = [fault.calls for fault in faults]

    def find(self, fault: Fault) -> Lines:
        """Return the lines of one of the faults; empty ones where the module's code tells nothing.

        The line is then where the module is made, as it is where a setting of the module differs.
        """
        lines = self._find(fault, self._scopes[id(fault)])
        if fault.stage == "forward" and not (lines.words or lines.is_proven):
            told = self._experiment.find_other_table(fault.place[1])
            if told is not None and told[0][1] is not None:
                lines = Lines(*told[0], table=told[1])
        known = lines.is_proven or bool(lines.words)  # else nothing shows that a condition decides
        condition = find_decision(lines.paddle) if known and lines.paddle is not None else ""
        decided = f"`{condition}` decides it" if condition else ""
        return replace(lines, words=". ".join(filter(None, [lines.words, decided])))

    def find_resized(self, fault: Fault) -> tuple[Fault, Lines] | None:
        """Return a fault as it shows first, where a tensor of another size is handed on, and its lines.

        None where no such tensor is handed on, or the calls do not say why.
        """
        resized = find_resized_input(fault, self._run)
        if resized is None:
            return None
        lines = self._find(resized, _find_scope(resized, self._run))
        return (resized, lines) if lines.words else None

    def find_unpacking(self, fault: Fault, name: str) -> Lines | None:
        """Return the lines that unpack what a call returns, if the port's gives `name` another part there.

        name: of the reference's output. None: the names are right, or nothing is unpacked.
        """
        if fault.expected is None or fault.actual is None:
            return None
        due, held = (
            KnownValues([part], _RELATIVE[self._runner.dtype])
            for part in (fault.expected, fault.actual)
        )
        ours, theirs = (_find_giver(trace.operations, due) for trace in self._traces)
        if theirs is None:
            return None
        given = dict(zip(list_targets(theirs.source), theirs.outputs, strict=False))
        if name not in given or not held.knows(given[name]):
            return None
        return Lines(None if ours is None else ours.source, theirs.source)

    def find_met(self, port: Runner | None = None) -> frozenset[int]:
        """Return which of PyTorch's calls in the code at fault give values that the port's calls give too.

        port: runs a port whose code was edited; None: the one in which the faults were found. Raises
        ModelFailure if the edited one does.
        """
        ours, theirs = self._traces
        if port is not None:
            theirs = run_again(port, self._training, self._run, wanted=self._wanted[1]).port
        relative = _RELATIVE[self._runner.dtype]
        given = KnownValues((made for one in theirs.operations for made in one.outputs), relative)
        return frozenset(
            number
            for number, one in enumerate(ours.operations)
            if one.outputs and all(map(given.knows, one.outputs))
        )

    def _find(self, fault: Fault, scope: CallPair | None) -> Lines:
        """scope: the calls in whose code the fault is."""
        place, pairing = fault.place, self._runner.pairing
        stock = place[1] in self._run.counterparts.stock
        kinds = place[1] in pairing.paddle.modules and pairing.paddle.modules[place[1]].kind
        if scope is None or (kinds and pairing.settings_differ(*place)):
            return Lines()
        found = self._search(fault, scope)
        if (held := self._find_held(fault, scope, found)) is not None:
            return held
        is_open = found is None or not found.is_sure or found.how == "lacking"
        if is_open and (lines := self._find_left_out(scope)) is not None:
            return lines
        if found is not None and found.theirs is not None and found.theirs.user is not None:
            return self._find_deciding(fault, scope, found)
        if found is None and fault.calls.theirs is not scope.theirs:
            return self._find_handing(fault)
        if found is None or (stock and not self._is_in_user_code(found, place[1])):
            return Lines()
        if not found.is_sure and (stock or find_settings(pairing, *place)):
            return Lines()
        return self._find_deciding(fault, scope, found)

    def _find_left_out(self, scope: CallPair) -> Lines | None:
        """Return where the port chooses to hold None for a module without weights that PyTorch calls."""
        paired, port = set(self._run.counterparts.names.values()), self._runner.port
        for call in self._traces[0].operations:
            path = _name_called(call)
            name, other = last_part(path), f"{scope.theirs.path}.{last_part(path)}".lstrip(".")
            if not path or path in paired or parent(path) != scope.ours.path:
                continue
            made = find_held(port.find_classes(scope.theirs.path), name)
            known = other in self._runner.pairing.paddle.modules
            if made is not None and not known and "None" in made.text and find_decision(made):
                words = f"{REFERENCE} calls `{path}` here, and {PORT} does not"
                return Lines(call.source, made, words)
        return None

    def _describe_idle(self, scope: CallPair) -> str:
        """Return which module the port never calls, where PyTorch calls those that it holds."""
        path, run = scope.theirs.path, self._run
        called = {one.path for one in run.port.calls}
        wanted = {self._runner.pairing.modules.get(one.path, "") for one in run.reference.calls}
        idle = {
            found
            for one in wanted - called
            if one != path and is_within(one, path)
            for found in [".".join(one.split(".")[: path.count(".") + 1 + bool(path)])]
            if not any(is_within(other, found) for other in called)
        }
        names = [f"`self.{last_part(one)}`" for one in sorted(idle)]
        return f"{PORT} never calls {names[0]}" if len(names) == 1 else ""

    def _find_handing(self, fault: Fault) -> Lines:
        """Return the lines at which the code at fault calls the child that shows it."""
        found = []
        calls, runs = fault.calls, (self._run.reference, self._run.port)
        for call, run, place, trace in zip(
            (calls.ours, calls.theirs), runs, fault.place, self._traces, strict=True
        ):
            keys = [call.key]
            while call.parent is not None and run.calls[call.parent].path != place:
                call = run.calls[call.parent]
                keys.append(call.key)
            made = (one for key in reversed(keys) for one in trace.operations if one.child == key)
            found.append(next((one.user or one.source for one in made), None))
        return Lines(found[0], found[1])

    def _find_deciding(self, fault: Fault, scope: CallPair, found: Difference) -> Lines:
        """Return the lines of a difference: of the arguments that decide it, where they are known."""
        pairing = self._runner.pairing
        sure = found.how == "value" or (found.how == "call" and found.is_sure)
        origin = find_origin(found, self._run.counterparts.names)
        if found.ours is not None and found.used is not None and self._is_moved(found):
            origin = found.ours.source, found.used.source
        lines = Lines(*origin, describe_difference(found), is_sure=sure)
        ours = find_deciding(self._runner.reference, pairing.torch, found.ours, lines.torch)
        theirs = find_deciding(self._runner.port, pairing.paddle, found.theirs, lines.paddle)
        numbers = found.theirs is not None and found.theirs.user is None and found.theirs.names
        call = found.theirs.source if found.theirs is not None and numbers else None
        return replace(
            lines,
            torch=ours,
            paddle=theirs,
            call=call,
            idle=self._describe_idle(scope),
            is_open=_may_be_a_mask(fault, found),
            first=_find_likeliest(found),
        )

    def _is_moved(self, found: Difference) -> bool:
        """Tell whether the port makes a call of a module that it lacks here at another place."""
        in_layer = found.used is not None and found.used.user is not None  # a setting decides there
        if found.how != "lacking" or found.ours is None or in_layer:
            return False
        names, path = self._run.counterparts.names, _name_called(found.ours)
        ours, theirs = ([*map(_name_called, trace.operations)] for trace in self._traces)
        made = [one for one in theirs if names.get(one) == path]
        return bool(path) and 0 < len(made) == ours.count(path)

    def _find_held(self, fault: Fault, scope: CallPair, found: Difference | None) -> Lines | None:
        """Return the line of a value that a module holds, and without which the fault is gone."""
        if fault.stage == "backward" or fault.actual is None:
            return None
        ours = None if found is None or found.ours is None else found.ours.source
        if (number := self._experiment.explain_number(fault, found)) is not None:
            torch = None if found is None else self._find_deciding(fault, scope, found).torch
            return Lines(torch, number[1], remedy=number[2], is_proven=True)
        scales = found is not None and is_scaling(
            found
        )  # no number mends it: a factor may be missing
        named = self._experiment.explain_named_number(fault, scope)
        if named is not None:
            return Lines(ours, named[1], remedy=named[2], is_proven=True)
        if _is_proven(found) and not scales:
            return None
        if (told := self._experiment.explain_tensor(fault)) is not None:
            return Lines(*told[0], is_proven=True, table=told[1])
        code = [one for one in self._traces[0].operations if one.call == scope.ours.key]
        if (told := self._experiment.explain_computed(fault, code)) is not None:
            return Lines(*told[0], is_proven=True, table=told[1])
        if not (_is_open(found) or scales):
            return None
        inside = [one for one in self._traces[1].operations if one.call == scope.theirs.key]
        switch = self._experiment.explain_switch(fault, scope, inside)
        if switch is None:
            return None
        return Lines(ours, switch[1], remedy=switch[2], is_proven=True)

    def _is_in_user_code(self, found: Difference, path: str) -> bool:
        """Tell whether the line stands in a file of the model's own classes, or in a function's body."""
        if found.how not in ("value", "lacking") or found.theirs is None:
            return True
        port = self._runner.port
        files = {place.file for above in ancestors(path) for place in port.find_classes(above)}
        return found.theirs.source.file in files

    def _search(self, fault: Fault, scope: CallPair) -> Difference | None:
        """Return the first difference in the code of the scope, or in the code around it."""
        relative, first = self._measure_closeness(fault), None
        for width in range(1, _WIDEST + 1):
            wide = (
                self._list_keys_around(scope.ours, self._run.reference, width),
                self._list_keys_around(scope.theirs, self._run.port, width),
            )
            ours, theirs = (
                [one for one in trace.operations if one.call in keys]
                for trace, keys in zip(self._traces, wide, strict=True)
            )
            if fault.stage == "backward":
                return find_cut(ours, theirs, relative)
            found = self._compare(fault, scope, ours, theirs, relative)
            if _is_settled(found, first):
                return self._follow_mask(scope, found)
            first = first or found
        return self._follow_mask(scope, first)

    def _follow_mask(self, scope: CallPair, found: Difference | None) -> Difference | None:
        """Return the call that makes a mask, where the found call takes one that hides other places."""
        if found is None or found.how not in ("call", "extra") or found.theirs is None:
            return found
        ours, theirs = self._traces
        inside = [one for one in ours.operations if one.call == scope.ours.key]
        due = [mask for one in write_out(inside) for mask in one.inputs]
        known = [places for mask in due if (places := find_places(mask)) is not None]
        for mask in found.theirs.inputs if known else ():
            if hides_otherwise(found.theirs, mask, known):
                keys = self._list_keys_around(scope.theirs, self._run.port)
                around = [one for one in theirs.operations if one.call in keys]
                maker = find_mask_maker(around, mask, due)
                return found if maker is None else Difference("mask", None, maker)
        return found

    def _measure_closeness(self, fault: Fault) -> float:
        """Return how far equal values may be apart: further beside a large fault, for float32 inside."""
        return max(_RELATIVE[self._runner.dtype], fault.residue)

    def _compare(
        self,
        fault: Fault,
        scope: CallPair,
        ours: Sequence[Operation],
        theirs: Sequence[Operation],
        relative: float,
    ) -> Difference | None:
        for target in self._find_targets(fault, scope):
            pair = (
                find_consumer(ours, target.keys[0], target.which),
                find_consumer(theirs, target.keys[1], target.which),
            )
            if None not in pair:
                given = [leaf.array for leaf in scope.ours.inputs.values()]
                found = find_difference(
                    ours,
                    theirs,
                    target.expected,
                    target.wrong,
                    pair,
                    relative,
                    given,
                    self._run.counterparts.names,
                )
                if found is not None:
                    return found
        hands_mask = fault.kind == "mask" or "mask" in fault.where
        moved = fault.place != fault.calls.paths and hands_mask
        return self._find_mask(fault, scope, theirs) if moved else None

    def _find_mask(
        self, fault: Fault, scope: CallPair, theirs: Sequence[Operation]
    ) -> Difference | None:
        """Return the call that makes the mask that the scope's code passes to a module."""
        calls: CallPair | None = fault.calls
        while calls is not None and calls.theirs is not scope.theirs:
            due = [leaf.array for leaf in calls.ours.inputs.values() if not leaf.differentiable]
            for leaf in calls.theirs.inputs.values():
                if not leaf.differentiable:
                    maker = find_mask_maker(theirs, leaf.array, due)
                    if maker is not None:
                        return Difference("mask", None, maker)
            calls = self._run.counterparts_around(calls)
        return None

    def _list_keys_around(self, call: Call, trace: Trace, width: int = _ALL) -> set[CallKey]:
        """Return a call and up to width - 1 calls of modules with a counterpart around it."""
        modules = self._run.modules
        paired = set(modules.values()) if trace is self._run.reference else set(modules)
        keys, at = {call.key}, call
        while at.parent is not None and len(keys) < width:
            at = trace.calls[at.parent]
            if at.path in paired:
                keys.add(at.key)
        return keys

    def _find_targets(self, fault: Fault, scope: CallPair) -> Iterator[_Target]:
        """Yield the wrong values: the fault's own, or those that the scope's code passes to a module.

        A mask or index comes first that the code at fault passes to the module which shows it.
        """
        if fault.calls.theirs is not scope.theirs and (fault.kind == "mask" or not fault.own_code):
            handed = self._list_differing(fault.calls, "inputs")
            yield from (target for target, flows in handed if not flows)
        if fault.kind != "mask" and fault.actual is not None and fault.expected is not None:
            calls = scope if fault.calls.theirs is scope.theirs else fault.calls
            which: Which = "outputs" if calls is scope else "inputs"
            leaves = getattr(fault.calls.ours, which).values()
            due = [leaf.array for leaf in leaves if leaf.array.size == fault.expected.size]
            yield _Target(
                (calls.ours.key, calls.theirs.key), which, [fault.expected, *due], fault.actual
            )
            return
        found = [*self._list_handed_on(scope)]
        yield from (target for target, flows in found if flows)
        yield from (target for target, flows in found if not flows)

    def _list_handed_on(self, scope: CallPair) -> Iterator[tuple[_Target, bool]]:
        """Yield what the scope's code hands to its children and is wrong; whether a gradient flows."""
        for calls in self._run.calls:
            around = self._run.counterparts_around(calls)
            if around is None or around.theirs is not scope.theirs:
                continue
            yield from self._list_differing(calls, "inputs")
        yield from self._list_differing(scope, "outputs")

    def _list_differing(self, calls: CallPair, which: Which) -> Iterator[tuple[_Target, bool]]:
        """Yield the inputs, or outputs, of two calls that differ, or that have no counterpart."""
        keys, pairs = (calls.ours.key, calls.theirs.key), self._run.pair_leaves(calls, which)
        for pair in pairs:
            ours, theirs = calls.leaves(pair, which)
            if not compare(pair, ours.array, theirs.array, rounding_of(calls.ours)).ok:
                due = [pair.to_port(ours.array), ours.array]
                yield _Target(keys, which, due, theirs.array), ours.differentiable
        paired = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
        leaves = getattr(calls.ours, which), getattr(calls.theirs, which)
        due = [leaf.array for at, leaf in leaves[0].items() if at not in paired[0]]
        for at, leaf in leaves[1].items():
            if at not in paired[1] and due and leaf.differentiable:
                yield _Target(keys, which, due, leaf.array), True

    @cached_property
    def _wanted(self) -> tuple[Wanted, Wanted]:
        """Both sides' calls of the modules at fault, and of all modules around them."""
        scopes = [scope for scope in self._scopes.values() if scope is not None]
        scopes += self._shown
        names = self._run.modules
        first = [self._list_keys_around(scope.ours, self._run.reference) for scope in scopes]
        second = [self._list_keys_around(scope.theirs, self._run.port) for scope in scopes]
        stock = self._runner.pairing.torch.stock, self._runner.pairing.paddle.stock
        ours = Wanted(frozenset().union(*first), frozenset(names.values()), stock=stock[0])
        return ours, Wanted(frozenset().union(*second), frozenset(names), stock=stock[1])

    @cached_property
    def _traces(self) -> tuple[Trace, Trace]:
        """Both sides' runs, with the calls of the code at fault."""
        ours, theirs = self._wanted
        try:
            return (
                self._runner.run_reference(
                    self._training, keep="none", wanted=ours, backward=False
                ),
                run_again(self._runner, self._training, self._run, wanted=theirs).port,
            )
        except ModelFailure:
            return Trace(), Trace()


def _name_called(operation: Operation) -> str:
    """Return the module that a call is of, or in whose code it stands."""
    return operation.module if operation.child is None else operation.child[0]


def _is_proven(found: Difference | None) -> bool:
    """Tell whether two calls that stand for each other make the difference, without mask or index."""
    if found is None or not found.is_sure:
        return False
    calls = [call for call in (found.ours, found.theirs) if call is not None]
    return all(call.differentiable for call in calls) and not (
        found.theirs is not None and _takes_constant(found.theirs)
    )


def _find_likeliest(found: Difference) -> Literal["condition", "mask", ""]:
    """Return the kind of edit that most likely mends a difference; "" if nothing tells."""
    if found.how == "mask" and found.theirs is not None:
        places = find_places(found.theirs.outputs[0])
        if places is not None:
            return "" if places.are_hidden else "mask"
    return "condition" if found.how in ("extra", "mask") else ""


def _may_be_a_mask(fault: Fault, found: Difference) -> bool:
    """Tell whether a mask made elsewhere may be at fault in place of the call that takes it."""
    if found.theirs is None or found.take_the_same:
        return False
    if fault.kind == "mask":
        return found.theirs.differentiable
    return found.how == "call" and _takes_constant(found.theirs)


def _takes_constant(operation: Operation) -> bool:
    """Tell whether a call takes a mask or an index, which no gradient flows through."""
    makers = [maker for maker in operation.makers if maker is not None]
    whole = any(value.dtype.kind in "biu" for value in operation.inputs)
    return whole or any(
        one.child is None and not one.differentiable and len(one.outputs) == 1 for one in makers
    )


def _is_settled(found: Difference | None, first: Difference | None) -> bool:
    """Tell whether a difference stands; else the code around may tell more. first: of narrower code.

    A call without a counterpart may have one there: PyTorch's caller may do what the port's module does.
    """
    if found is None or (found.how == "value" and found.made is None):
        return found is not None and _is_handed(found)
    if first is not None and _lacks_counterpart(first):
        return found.is_sure and not _lacks_counterpart(found)
    return not _lacks_counterpart(found)


def _is_handed(found: Difference) -> bool:
    """Tell whether a function's parameter holds the wrong value: its caller hands it on."""
    used = found.used
    return used is not None and find_handing(used, found.held, found.handed) is not None


def _lacks_counterpart(found: Difference) -> bool:
    return found.how == "extra" and not found.is_sure


def _is_open(found: Difference | None) -> bool:
    """Tell whether a condition may be behind it: one side makes a call that the other does not."""
    return found is None or not found.is_sure or found.how in ("lacking", "extra", "value")


def _find_scope(fault: Fault, run: PinnedRun) -> CallPair | None:
    """Return the calls in whose code the fault is: the innermost ones that stand for each other."""
    calls: CallPair | None = fault.calls
    if fault.place != fault.calls.paths and run.are_counterparts(fault.calls):
        calls = run.counterparts_around(fault.calls)
    around = calls
    while around is not None and around.paths != fault.place:
        around = run.counterparts_around(around)
    return around or calls


def _find_giver(operations: Iterable[Operation], due: KnownValues) -> Operation | None:
    """Return the first call that gives several values, a known one among them."""
    found = (one for one in operations if len(one.outputs) > 1)
    return next((one for one in found if any(map(due.knows, one.outputs))), None)
