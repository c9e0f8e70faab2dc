"""Changes one thing in the port and runs it again: the change with which a fault is gone explains it.

The port runs on the reference's numbers, as when the fault was found. An edit puts another text of its
files in force; each is tried in a copy of this process, so that nothing of it stays. A value that a
module holds, such as a rotary table or a switch, is made before the run, so that no edit of what runs
mends it: it is replaced in the module.
"""

import math
import re
import time
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

from reprod_align.alignment.lines.construction import find_argument
from reprod_align.alignment.lines.divergence import Difference
from reprod_align.alignment.lines.graph import ROUGH, are_alike, are_equal
from reprod_align.alignment.locating.counterparts import CallPair, PinnedRun
from reprod_align.alignment.locating.elsewhere import run_elsewhere
from reprod_align.alignment.locating.fault import Fault, find_apart, rounding_of
from reprod_align.alignment.locating.faults import find_backward_faults, list_differences
from reprod_align.alignment.locating.masks import find_makers
from reprod_align.alignment.locating.pinning import run_again
from reprod_align.alignment.locating.remaking import NotRemadeError, remake
from reprod_align.alignment.runner import Runner
from reprod_align.alignment.tables import cut, fit, lay_over, may_fit, shape_as_rows
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.text import ancestors, is_within, last_part, parent
from reprod_align.explain.donor import translate_keyword
from reprod_align.explain.edits import ROWS
from reprod_align.explain.executed import note_functions, note_lines
from reprod_align.explain.overlay import NotAppliedError, overlaid
from reprod_align.explain.scope import Scope, Sources, find_owner, find_scope
from reprod_align.explain.trials import BUDGETS, Files, Made, Texts, Trial, TrialSearch, list_texts
from reprod_align.model.local import LocalSide, find_local, use_one_thread
from reprod_align.model.side import ModelFailure
from reprod_align.model.source import Operation, SourceLine, Switch, Wanted
from reprod_align.model.source.making import read_attributes
from reprod_align.report import Finding, Suggestion

_CLOSE = 1e-6  # relative: a table may be kept in float32
_MOST_TENSORS = 8  # runs with another table, for all faults of one pass
_MOST_SWITCHES = 20

SLOW = 1.0  # seconds of one run: a larger model's edits are left to `fix`
TIMED_TWICE = 5.0  # seconds: a run that takes fewer is timed again, since the first one may be slow
_LONG = 2  # lines beside it that a statement may have
_PART = 0.5  # of what an edit may mend, where something of the same code is left
_IN_VAIN = 2  # faults without an edit; further ones of the pass are not tried

Key = tuple[Any, ...]
"""of a fault: what is the same in another run"""
Told = tuple[SourceLine | None, SourceLine | None, str]
"""the lines that make a value, and what is wrong with it"""


_BUILT_IN = ("relu", "gelu", "sigmoid", "tanh", "silu", "hardswish", "relu6")
"""what Paddle's layers can have built in by its name"""


@dataclass(frozen=True)
class Table:
    """A tensor that a module of the port makes, and what it should hold."""

    name: str
    """of the port's: "layers.0.rotary.cos" """
    due: Array
    """as much of PyTorch's as both sides hold, in the port's shape"""

    def fits(self, held: Array) -> bool:
        """Tell whether a tensor holds what it should."""
        return are_equal(self.due, cut(held, self.due), ROUGH)


@dataclass
class Experiment:
    """What is tried for the faults of one pass: values that modules hold, and edits."""

    runner: Runner
    training: bool
    run: PinnedRun
    """on the reference's numbers, in which the faults were found"""
    noise: float = 0.0
    """of the outputs, as the search for faults of the backward pass takes it"""
    files: Files = field(default_factory=Files)
    found: list[Made] = field(default_factory=list)
    """edits that mend a fault, and the texts that they make"""
    in_vain: int = 0
    search: TrialSearch = field(default_factory=lambda: TrialSearch(BUDGETS["align"]))
    tensors: int = 0
    """how many tables were tried"""
    switches: int = 0
    proven: list[Switch] = field(default_factory=list)
    """what made earlier faults go away"""

    def __post_init__(self) -> None:
        """Work with the sides themselves where they are in this process: a trial announces nothing."""
        reference, port = find_local(self.runner.reference), find_local(self.runner.port)
        if reference is not None and port is not None:
            self.runner = replace(self.runner, reference=reference, port=port)

    def explain(
        self,
        finding: Finding,
        fault: Fault,
        near: tuple[bool, bool, str],
        call: SourceLine | None = None,
        rows: Collection[str] = ROWS,
    ) -> Suggestion | None:
        """Return the edit with which a fault is gone and no other comes; None if none is found.

        near: what the calls have told: the line, so that elsewhere fewer kinds of edits are tried; the call
        that differs; and the likeliest kind of edit. call: where the port's call is written, if the
        finding names a line of its constructor: what that says cannot be edited in a model that is made.
        rows: the kinds of edits that are tried.
        """
        reference, port = self.runner.reference, self.runner.port
        if not (isinstance(reference, LocalSide) and isinstance(port, LocalSide)):
            return None  # the code is in another process
        if self.in_vain >= _IN_VAIN or self.search.is_spent:
            return None
        began = time.process_time()
        try:
            trial = self._search(finding, fault.shown or fault, reference, port, near, call, rows)
        finally:
            self.search.seconds += time.process_time() - began
        self.in_vain += trial is None
        if trial is None:
            return None
        return self.files.suggest(trial)

    def _search(
        self,
        finding: Finding,
        fault: Fault,
        reference: LocalSide,
        port: LocalSide,
        near: tuple[bool, bool, str],
        call: SourceLine | None,
        rows: Collection[str],
    ) -> Trial | None:
        modules = {ours: theirs for theirs, ours in self.run.modules.items()}
        sources = Sources(self.files.loaded)
        lines, seconds = dict[str, frozenset[int]](), 0.0
        for line in (finding.paddle_line, *([str(call)] if call is not None else [])):
            place = replace(finding, paddle_line=line)
            scope = find_scope(place, reference, port, modules, sources)
            scope = replace(
                scope, regions=[one for one in scope.regions if self.files.knows(one.file)]
            )
            if not lines:
                began = time.process_time()
                lines = note_lines({one.file for one in scope.regions}, lambda: self._run(False))
                seconds = time.process_time() - began
                if SLOW < seconds < TIMED_TWICE:
                    began = time.process_time()
                    self._run(False)
                    seconds = min(seconds, time.process_time() - began)
            if _may_be_there(scope, lines):
                break
        if seconds > SLOW or not scope.regions or not _may_be_there(scope, lines):
            return None
        scope = replace(scope, lines=lines)
        known = self._list_keys(self.run, fault.stage)
        if fault.key not in known:
            return None  # it shows in other runs alone
        classes = [*{type(module) for _, module in port.fw.modules(port.model)}]

        def list_wanted() -> Iterator[Made]:
            texts = chain(self.found, list_texts(self.files, scope, {}, *near))
            return (one for one in texts if one[0].candidate.kind in rows)

        def mends(made: Made) -> float:
            find = partial(find_owner, port, fault.place[1], made[0].file, made[0].candidate.line)
            gone = self._mends(made[1], classes, fault, known, find)
            return gone if gone and self._mends_elsewhere(made[1], classes, fault) else 0

        prepare = partial(use_one_thread, reference, port)
        found = self.search.find_first(list_wanted, mends, prepare, seconds)
        if found is not None and found not in self.found:
            self.found.append(found)
        return None if found is None else found[0]

    def _mends(
        self,
        texts: Texts,
        classes: Sequence[type],
        fault: Fault,
        known: Collection[Key],
        find: Callable[[], str | None],
    ) -> float:
        """Return 1 if a fault is gone with these texts and nothing else differs that agreed, 0 if not.

        find: returns the module in whose code the edit stands; few edits get so far that it matters. Half if
        another value of that module, or of the one at fault, still differs: the edit mends one use of a
        wrong value, where another mends what makes it. Half, too, if a mask or an index differs that agreed:
        the edit makes up for a mistake of the code that takes it.
        """
        backward = fault.stage == "backward"
        try:
            with overlaid(self.files.loaded, texts, classes):
                seen = not backward and fault.find_wrong() is not None
                if seen and not self.is_gone(fault):  # a part of the run tells
                    return 0
                run = self._run(backward)
                keys = self._list_keys(run, fault.stage, fault.residue)
                if fault.key in keys or not keys <= set(known) or not self._keeps_outputs(run):
                    return 0
                if fault.is_of_shape and not _gives_same_outputs(run, fault):
                    return 0
                owners = {fault.place[1], find()}
                whole = not any(key[1][1] in owners for key in keys)
                whole = whole and _list_constants_apart(run) <= self._constants_apart
                if not backward:  # what mends the values may cut the gradient
                    run, other = self._run(True), "backward"
                else:  # what mends the gradient may change the values
                    other = "forward"
                others = self._list_keys(run, other, fault.residue)
                gone = others <= self._list_keys(self.run, other)
                return (1 if whole else _PART) if gone else 0
        except (NotAppliedError, ModelFailure):
            return 0

    def _keeps_outputs(self, run: PinnedRun) -> bool:
        """Tell whether a run still gives the outputs that both sides give at one place of a structure."""
        due = self.run.reference.outputs.keys() & self.run.port.outputs.keys()
        return due <= run.port.outputs.keys()

    def _mends_elsewhere(self, texts: Texts, classes: Sequence[type], fault: Fault) -> bool:
        """Tell whether a fault is gone with these texts on another batch too, if it shows on one."""
        if self._elsewhere is None:
            return True
        runner, run = self._elsewhere
        known = self._list_keys(run, fault.stage)
        if fault.key not in known:
            return True
        try:
            with overlaid(self.files.loaded, texts, classes):
                made = run_again(runner, self.training, run, backward=fault.stage == "backward")
        except ModelFailure:
            return False
        keys = self._list_keys(made, fault.stage, fault.residue)
        return fault.key not in keys and keys <= known

    @cached_property
    def _constants_apart(self) -> set[Key]:
        """The masks and indices that differ in the run in which the faults were found."""
        return _list_constants_apart(self.run)

    @cached_property
    def _elsewhere(self) -> tuple[Runner, PinnedRun] | None:
        """What runs both sides on another batch, and the port's run there; None if there is none."""
        return run_elsewhere(self.runner, self.training)

    # ------------------------------------------------- values that modules hold

    def explain_tensor(self, fault: Fault) -> tuple[Told, Table] | None:
        """Return what is wrong with a tensor that a module makes itself; None if nothing is found.

        With PyTorch's values in it the fault is gone.
        """
        pairing = self.runner.pairing
        due, held = self.runner.reference.read_tables(), self.runner.port.read_tables()
        registered = self._list_tensors(fault.place[1])
        plain = _list_tables_apart(due, held, fault.place[1], pairing.paddle.tensors)
        for name, other in chain(registered, plain):
            if self.tensors >= _MOST_TENSORS:
                return None
            self.tensors += 1
            known = other in pairing.paddle.tensors
            ours, theirs = (
                (self.runner.weights[name], self.runner.held[other])
                if known
                else (due[name], held[other])
            )
            table = Table(other, fit(ours, theirs))
            setter = self.runner.port.load if known else self.runner.port.set_tables
            if self._mends_set(setter, fault, table, theirs):
                words = (
                    f"{last_part(other)}, a tensor that {PORT}'s module makes, is not "
                    f"{REFERENCE}'s {name}"
                )
                pairs = (parent(name), last_part(name)), (parent(other), last_part(other))
                told = (
                    find_argument(self.runner.reference, pairing.torch, pairs[0][0], [pairs[0][1]]),
                    find_argument(self.runner.port, pairing.paddle, pairs[1][0], [pairs[1][1]]),
                    f"{words}: with its values the numbers agree",
                )
                return told, table
        return None

    def explain_computed(
        self, fault: Fault, calls: Iterable[Operation]
    ) -> tuple[Told, Table] | None:
        """Return the table that the port makes once, and PyTorch in each run with other values.

        With PyTorch's values in it the fault is gone; None without such a table. calls: of PyTorch's code at
        the fault, which take what it computes, and no gradient flows through that.
        """
        port, info = self.runner.port, self.runner.pairing.paddle
        loaded = self.runner.pairing.loaded_names
        held = {name: table for name, table in port.read_tables().items()
                if is_within(name, fault.place[1]) and name not in loaded}  # fmt: skip
        due = list(_list_computed(calls)) if held else []
        fitting = [
            (at, name, rows)
            for at, (_, _, value) in enumerate(due)
            for name, table in held.items()
            if (rows := shape_as_rows(value, table)) is not None
        ]
        equal = [(at, name) for at, name, rows in fitting
                 if are_equal(rows, cut(held[name], rows), ROUGH)]  # fmt: skip
        met, right = {at for at, _ in equal}, {name for _, name in equal}
        # a table that is right for one value may still be wrong where another is due: those come last
        for at, name, rows in sorted(fitting, key=lambda one: one[1] in right):
            if at in met:
                continue
            if self.tensors >= _MOST_TENSORS:
                return None
            self.tensors += 1
            table = Table(name, rows)
            if self._mends_set(port.set_tables, fault, table, held[name]):
                call, word, _ = due[at]
                line = find_argument(port, info, parent(name), [last_part(name)])
                words = (
                    f"{last_part(name)}, a tensor that {PORT}'s module makes, is not what {REFERENCE} "
                    f"computes as `{word}`: with its values the numbers agree"
                )
                maker = call.makers[call.tensors[word]]
                return ((maker or call).source, line, words), table
        return None

    def explain_making(self, finding: Finding, table: Table) -> Suggestion | None:
        """Return the edit with which a module's constructor makes a table as it should be; None if none does.

        finding: at the line that makes it.
        """
        runner, reference, port = self.runner, self.runner.reference, self.runner.port
        if not (isinstance(reference, LocalSide) and isinstance(port, LocalSide)):
            return None

        def make() -> Array | None:
            try:
                module = remake(port, runner.pairing.paddle, parent(table.name))
                made: Array = port.fw.array(getattr(module, last_part(table.name)))
            except (NotRemadeError, AttributeError):
                return None
            return made

        def mends(made: Made) -> bool:
            try:
                with overlaid(self.files.loaded, made[1], classes):
                    held = make()
            except NotAppliedError:
                return False
            return held is not None and table.fits(held)

        began = time.process_time()
        first, held = make(), port.read_tables().get(table.name)
        seconds = time.process_time() - began
        if first is None or held is None or not are_equal(first, held, ROUGH) or seconds > SLOW:
            return None
        classes = [*{type(module) for _, module in port.fw.modules(port.model)}]
        modules, sources = runner.pairing.modules, Sources(self.files.loaded)
        scope = find_scope(finding, reference, port, modules, sources, note_functions(make))
        regions = [one for one in scope.regions if self.files.knows(one.file)]
        scope = replace(scope, regions=regions)
        found = self.search.find_first(
            lambda: chain(self.found, list_texts(self.files, scope, {}, first="table")),
            mends,
            partial(use_one_thread, reference, port),
            seconds,
        )
        if found is not None and found not in self.found:
            self.found.append(found)
        return None if found is None else self.files.suggest(found[0])

    def find_other_table(self, path: str) -> tuple[Told, Table] | None:
        """Return a tensor that a module in `path` makes and holds, and that PyTorch's of its name is not.

        Nothing is proven: what is computed of it when the module is made is not made anew.
        """
        reference, port = self.runner.reference, self.runner.port
        due: dict[str, list[tuple[str, Array]]] = {}
        for place, array in reference.read_tables().items():
            due.setdefault(last_part(place).lstrip("_"), []).append((place, array))
        for place, array in port.read_tables().items():
            name = last_part(place).lstrip("_")
            alike = [
                (other, fit(one, array)) for other, one in due.get(name, ()) if may_fit(one, array)
            ]
            if not alike or not is_within(place, path):
                continue
            if not any(are_equal(one, cut(array, one), ROUGH) for _, one in alike):
                line = find_argument(port, self.runner.pairing.paddle, parent(place), [name])
                ours = self.runner.pairing.torch
                other = find_argument(reference, ours, parent(alike[0][0]), [name])
                words = f"{name}, a tensor that {PORT}'s module makes, is not {REFERENCE}'s {alike[0][0]}"
                return (other, line, words), Table(place, alike[0][1])
        return None

    def explain_number(self, fault: Fault, found: Difference | None) -> Told | None:
        """Return which number that the port's call is made with makes the fault go away; None if none does.

        found: the calls between which it arises. A number that the call reads from its module is replaced
        by those of PyTorch's call, which may divide by what the port multiplies with, or by that of the
        same name where it has one; a layer that drops and has no counterpart drops nothing. Where the port
        makes no such call, its module may hold 1 for the number that PyTorch's call reads.
        """
        if found is None or found.theirs is None:
            return None
        ours, theirs, port = found.ours, found.theirs, self.runner.port
        if (told := self._find_switch(fault, self._list_built_in(theirs))) is not None:
            return told
        if found.how == "extra":  # the line is that of the call where the user has written it
            told = self._find_switch(fault, self._keep_all(theirs))
            if told is not None:
                # a library may run Paddle's layers by a function of its own
                own = theirs.source.file in {one.file for one in port.find_classes(theirs.module)}
                stock = theirs.module in self.run.counterparts.stock or not own
                made = told[1] is not None and (
                    stock or _writes_number(told[1], self.proven[-1].before)
                )
                return told[0], told[1] if made else theirs.source, told[2]
            return self._find_switch(fault, self._list_due(theirs))
        if ours is None:
            return None
        if found.how == "lacking":
            return self._find_switch(fault, self._list_neutral(fault, ours))
        if found.how != "call":
            return None
        call, held = ours.whole or ours, port.read_attributes(theirs.module)
        named = {translate_keyword(name): one for name, one in call.keywords.items()}
        return self._find_switch(
            fault,
            [
                Switch(theirs.module, name, number, due)
                for name in read_attributes(theirs.source)
                if isinstance(number := held.get(name), (int, float))
                for given in dict.fromkeys([named[name]] if name in named else call.constants)
                if isinstance(given, (int, float)) and not _is_turned(given, number)
                for due in (given, 1 / given if given and name not in named else given)
            ],
        )

    def _list_neutral(self, fault: Fault, ours: Operation) -> Iterator[Switch]:
        """Yield PyTorch's number in the place of a 1 of the same name, in the modules around a fault."""
        numbers = {
            last_part(name): value
            for name, value in ours.names.items()
            if name.startswith("self.") and isinstance(value, float)
        }
        for path in (fault.place[1], *ancestors(fault.place[1])):
            held = self.runner.port.read_attributes(path) if numbers else {}
            yield from (
                Switch(path, name, held[name], due)
                for name, due in numbers.items()
                if held.get(name) == 1 != due
            )

    def _list_due(self, call: Operation) -> Iterator[Switch]:
        """Yield what PyTorch's modules hold under the name of a number that a call reads from its module.

        With a factor of 1 PyTorch may make no such call.
        """
        held = self.runner.port.read_attributes(call.module)
        names = [name for name in read_attributes(call.source) if isinstance(held.get(name), float)]
        modules = self.runner.pairing.torch.modules if names else ()
        numbers = [*map(self.runner.reference.read_attributes, modules)]
        for name in names:
            due = dict.fromkeys(one[name] for one in numbers if name in one)
            yield from (
                Switch(call.module, name, held[name], one) for one in due if one != held[name]
            )

    def _list_built_in(self, call: Operation) -> Iterator[Switch]:
        """Yield other activations for a layer of Paddle's that has one built in: `act="gelu"`."""
        path = "" if call.child is None else call.child[0]
        modules = self.runner.pairing.paddle.modules
        act = modules[path].values.get("act") if path in modules and modules[path].kind else None
        yield from (Switch(path, "act", act, other) for other in _BUILT_IN if act and other != act)

    def _keep_all(self, call: Operation) -> Iterator[Switch]:
        """Yield the switch with which a layer that PyTorch has none for drops nothing, if it drops."""
        path = f"{call.module}.{call.called.removeprefix('self.')}".lstrip(".")
        known = path in self.runner.pairing.paddle.modules
        rate = self.runner.port.read_attributes(path).get("p") if known else None
        if rate and path not in self.run.counterparts.names:
            yield Switch(path, "p", rate, 0.0)

    def explain_switch(self, fault: Fault, scope: CallPair, inside: list[Operation]) -> Told | None:
        """Return which switch or number of a module makes the fault go away; None if none does.

        scope: the calls in whose code it arises. inside: the calls that the port's code makes there.
        """
        return self._find_switch(fault, self._list_switches(fault, scope, inside))

    def explain_named_number(self, fault: Fault, scope: CallPair) -> Told | None:
        """Return which number the fault hangs on that PyTorch's module holds otherwise under its name."""
        named = (
            one for one in self._list_switches(fault, scope, []) if isinstance(one.before, float)
        )
        return self._find_switch(fault, named)

    def _find_switch(self, fault: Fault, found: Iterable[Switch]) -> Told | None:
        known = [(one.name, one.after) for one in self.proven]
        for one in sorted(found, key=lambda it: (it.name, it.after) not in known):
            if self.switches >= _MOST_SWITCHES:
                return None
            self.switches += 1
            if self.is_gone(fault, one):
                self.proven.append(one)
                info = self.runner.pairing.paddle
                line = find_argument(self.runner.port, info, one.path, [one.name])
                own = one.path in (fault.place[1], fault.calls.theirs.path)
                name = one.name if own else f"{last_part(one.path)}.{one.name}"
                words = (
                    f"{name} is {one.before!r} in {PORT}: {one.after!r} gives {REFERENCE}'s numbers"
                )
                return None, line, words
        return None

    def _list_tensors(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield PyTorch's tensors beside those of the port's that could be meant to hold the same."""
        pairing = self.runner.pairing
        ours = {name: self.runner.weights[name] for name, one in pairing.torch.tensors.items()
                if not one.is_parameter and name in self.runner.weights}  # fmt: skip
        for other, one in pairing.paddle.tensors.items():
            held = self.runner.held.get(other)
            if one.is_parameter or other in pairing.loaded_names or held is None or held.size < 2:
                continue
            if not is_within(other, path):
                continue
            alike = {name: fit(array, held) for name, array in ours.items()
                     if array.dtype.kind == held.dtype.kind and may_fit(array, held)}  # fmt: skip
            if any(are_equal(one, cut(held, one), _CLOSE) for one in alike.values()):
                continue
            yield from (
                (name, other)
                for name in sorted(alike, key=lambda it: last_part(it) != last_part(other))
            )

    def _list_switches(
        self, fault: Fault, scope: CallPair, inside: list[Operation]
    ) -> Iterator[Switch]:
        """Yield switches of the modules around the fault and of those that these call.

        Numbers are exchanged for those of PyTorch's module.
        """
        around = [fault.calls.theirs.path]
        while around[-1] and around[-1] != scope.theirs.path:
            around.append(parent(around[-1]))
        children = [one.child[0] for one in inside if one.child is not None]
        names = self.run.counterparts.names
        for path in dict.fromkeys([*around[1:], *around[:1], *children]):
            if not self._is_kernel(path):
                due = self.runner.reference.read_attributes(names[path]) if path in names else {}
                yield from _turn(path, self.runner.port.read_attributes(path), due)

    def _is_kernel(self, path: str) -> bool:
        """Tell whether a layer of the framework's own hands what it holds to a kernel.

        A kernel that gets a wrong size ends the process; the audit compares these settings.
        """
        composites = {self.run.port.calls[number].path for number in self.run.composites}
        return path in self.run.counterparts.stock and path not in composites

    def _mends_set(
        self,
        load: Callable[[Mapping[str, Array]], None],
        fault: Fault,
        table: Table,
        held: Array,
    ) -> bool:
        """Tell whether a fault is gone with a table as it should be. load: gives the port tensors."""
        load({table.name: lay_over(table.due, held)})
        try:
            return self.is_gone(fault)
        finally:
            load({table.name: held})

    # ------------------------------------------------- runs

    def is_gone(self, fault: Fault, switch: Switch | None = None) -> bool:
        """Tell whether the port has what is due at a fault of the forward pass now that it was changed.

        switch: another value that a module holds. The run ends at the fault's place.
        """
        place = fault.find_wrong()
        if place is None:
            return False
        key = fault.calls.theirs.key
        wanted = Wanted(frozenset(), frozenset(), last=(key, place[0]), switch=switch)
        try:
            trace = run_again(self.runner, self.training, self.run, wanted=wanted).port
        except ModelFailure:
            return False
        call = trace.by_key().get(key)
        leaf = None if call is None else getattr(call, place[0]).get(place[1])
        return leaf is not None and fault.agrees(leaf.array)

    def _run(self, backward: bool) -> PinnedRun:
        return run_again(self.runner, self.training, self.run, backward=backward)

    def _list_keys(self, run: PinnedRun, stage: str, residue: float = 0.0) -> set[Key]:
        """Return what differs in a run by more than `residue`, by the calls and values at which it shows.

        A gradient that is cut off counts whatever its size: where it was cut off, both may be equal to the
        last bit, since the port is given the reference's.
        """
        backward = find_backward_faults(run, self.noise) if stage == "backward" else None
        faults = list_differences(run) if backward is None else backward
        return {one.key for one in faults if one.kind == "cut" or one.gap.relative > residue}


def _gives_same_outputs(run: PinnedRun, fault: Fault) -> bool:
    """Tell whether the call at a fault gives the reference's outputs, whatever depends on them.

    No gradient tells what depends on an output that had another shape.
    """
    key = fault.calls.theirs.key
    calls = next((one for one in run.calls if one.theirs.key == key), None)
    if calls is None:
        return False
    return next(find_apart(run, calls, "outputs", rounding_of(calls.ours)), None) is None


def _list_constants_apart(run: PinnedRun) -> set[Key]:
    """Return the masks and indices that differ in a run, by the calls at which they show."""
    return {one.key for one in find_makers(run)}


def _list_computed(calls: Iterable[Operation]) -> Iterator[tuple[Operation, str, Array]]:
    """Yield the floats that calls take and no gradient flows through: the call, their name there, them."""
    known: list[Array] = []
    for call in calls:
        for word, position in call.tensors.items():
            value, maker = call.inputs[position], call.makers[position]
            is_computed = maker is None or not maker.differentiable
            if not is_computed or value.dtype.kind != "f" or value.size < 2:
                continue
            if not any(are_alike(value, one, ROUGH) for one in known):
                known.append(value)
                yield call, word, value


def _list_tables_apart(
    due: Mapping[str, Array], held: Mapping[str, Array], path: str, known: Container[str]
) -> Iterator[tuple[str, str]]:
    """Yield PyTorch's tables beside those in `path` that could be meant to hold the same, and do not."""
    for other, table in held.items():
        if other in known or not is_within(other, path):
            continue
        alike = {name: fit(one, table) for name, one in due.items() if may_fit(one, table)}
        if not any(are_equal(one, cut(table, one), ROUGH) for one in alike.values()):
            yield from ((name, other) for name in alike)


def _is_turned(due: float, held: float) -> bool:
    """Tell whether a number is another one, its negative or its inverse: then the operator differs."""
    return due in (held, -held) or math.isclose(due * held, 1)


def _writes_number(line: SourceLine, number: object) -> bool:
    """Tell whether a line writes a number out, so that no setting of the user's decides it."""
    return re.search(rf"(?<![\w.]){re.escape(repr(number))}(?![\w.])", line.text) is not None


def _turn(path: str, held: Mapping[str, object], due: Mapping[str, object]) -> Iterator[Switch]:
    """Yield each switch turned, and what PyTorch's module holds under the same name otherwise."""
    for name, value in held.items():
        if isinstance(value, bool):
            # one that PyTorch's module holds alike leads around the fault, turned
            if due.get(name) is not value:
                yield Switch(path, name, value, not value)
        elif name in due and type(due[name]) is type(value) and due[name] != value:
            yield Switch(path, name, value, due[name])


def _may_be_there(scope: Scope, lines: Mapping[str, Collection[int]]) -> bool:
    """Tell whether the line that the finding names is of a statement that ran, or of no known one.

    What a constructor says cannot be edited in a model that is made.
    """
    file, line = scope.place
    if file not in lines or not line:
        return True
    ran = lines[file]
    return any(at in ran for at in range(line - _LONG, line + _LONG + 1))
