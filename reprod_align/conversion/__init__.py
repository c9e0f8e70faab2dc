"""Converts a checkpoint: finds the state dict and the map, plans, writes, proves them by a forward pass.

What a training script saved may be wrapped, prefixed, or have copies beside it. Which tensor becomes which,
and how, follows from a pair of models, as `align` pairs their tensors. The files of the source are never
written over, nor those of another conversion beside them.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from reprod_align.base.blocks import Array
from reprod_align.base.console import track
from reprod_align.base.files import as_json
from reprod_align.base.text import count, shorten, table
from reprod_align.conversion.plan import (
    Loader,
    Plan,
    PlannedTensor,
    list_departures,
    list_differences,
    make_plan,
)
from reprod_align.conversion.weight_map import Agreement, ModelPair, Models, WeightMap, work_with
from reprod_align.errors import ReprodError, WeightsError, join_lines, one_line
from reprod_align.weights import (
    INDEX,
    Checkpoint,
    FileLocation,
    Opaque,
    Stored,
    TensorEntry,
    find_kind,
    name_all,
    name_files,
    open_checkpoint,
    write_checkpoint,
)

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
    for prefix, found in prefixes.items():
        if 2 * found > most:  # others are names that end alike
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


SHARD_SIZE = 5 * 10**9
"""bytes of one file of a sharded checkpoint, as Hugging Face's"""


def require_free(
    source: Checkpoint, target: Path, entries: Sequence[TensorEntry], shard_size: int
) -> None:
    """Raise ReprodError if a file of the source would be written over, or stale ones stay beside."""
    names = name_files(target, entries, shard_size)
    for path in map(target.with_name, names):
        for file in source.files if path.exists() else ():
            if isinstance(file, Path) and path.samefile(file):
                raise ReprodError(f"{path} is the source {file}: name another target")
    stale = sorted(_list_stale(target, names))
    if stale:
        raise ReprodError(
            f"{target.with_name(stale[0])} is of another conversion, and a reader of the folder may take "
            "it: remove it, or name another folder"
        )


def _list_stale(target: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield the shards and the index of an earlier conversion that would not be replaced."""
    whole = target.name.removesuffix(INDEX)
    stem, suffix = re.escape(Path(whole).stem), re.escape(Path(whole).suffix)
    known = re.compile(rf"{stem}(-\d{{5}}-of-\d{{5}}{suffix}|{suffix}{re.escape(INDEX)})")
    for path in target.parent.iterdir() if target.parent.is_dir() else ():
        if known.fullmatch(path.name) and path.name not in names:
            yield path.name


@dataclass(frozen=True)
class Conversion:
    """What is to be converted, and how."""

    source: FileLocation | Checkpoint
    """a checkpoint that is open already may have other names than its file"""
    target: Path
    select: str = ""
    """which state dict of the source, where it holds several"""
    source_framework: str = ""
    """"torch" or "paddle"; "" where the file tells"""
    shard_size: int = SHARD_SIZE
    dry_run: bool = False
    check: bool = True
    """whether the outputs of both models are compared before the file gets its name"""

    def open_source(self) -> Checkpoint:
        """Return the source, its tensors unread."""
        return self.source if isinstance(self.source, Checkpoint) else open_checkpoint(self.source)


@dataclass
class ConversionResult:
    """What was done."""

    rows: list[PlannedTensor]
    map: WeightMap | None = None
    faults: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    agreement: Agreement | None = None
    """None: the models were not run"""
    written: Path | None = None
    amount: str = ""
    """how much was written, in words"""

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults and (self.agreement is None or self.agreement.passed)

    def summary(self) -> str:
        """Return one row a tensor, what is wrong, and the figure of the forward pass."""
        lines = table([PlannedTensor.HEADERS, *map(astuple, self.rows)])
        if self.faults:
            lines += ["", f"{count(len(self.faults), 'fault')}:"]
            lines += [f"  - {one_line(fault)}" for fault in self.faults]
        lines += [f"remark: {one_line(remark)}" for remark in self.remarks]
        if self.agreement is not None:
            lines.append(self.agreement.summary())
        if self.written is not None:
            lines.append(f"wrote {self.written}: {self.amount}")
        return join_lines(lines)

    def to_json(self) -> str:
        """Return the same as strict JSON."""
        names = "rows", "faults", "remarks", "agreement", "written"
        return as_json({"passed": self.passed} | {name: getattr(self, name) for name in names})


class _OutputsDiffer(Exception):
    """The outputs differ: what was written must not get its name."""


def convert(
    order: Conversion, pair: ModelPair | None = None, given: WeightMap | None = None
) -> ConversionResult:
    """Convert a checkpoint from one framework to the other.

    pair: the two models, which yield the map and prove the result. given: a map in place of theirs. One
    of the two is needed; with a map alone nothing is proven, and `order.check` must be False. Nothing
    is written if a tensor is missing, left over or misshapen, or if the outputs differ. Raises
    MissingInputError, WeightsError or ReprodError for what cannot be read, written or decided.
    """
    if pair is None and (given is None or (order.check and not order.dry_run)):
        raise ReprodError(
            "nothing tells the names or proves the result without the models: give --pair FILE.py, or "
            "--torch, --paddle and --inputs; if they can't be built, --map FILE with --no-check"
        )
    source = order.open_source()
    before = find_framework(source, order.source_framework, order.target)
    with work_with(pair) if pair is not None else nullcontext() as models:
        prepared = prepare(source, before, order.select, models, given)
        plan = prepared.plan(models)
        kept = replace(prepared.map, counters={**prepared.map.counters, **plan.counters})
        outcome = ConversionResult(plan.rows, kept, [*prepared.faults, *plan.faults])
        if not outcome.faults and not order.dry_run:
            require_free(source, order.target, plan.entries, order.shard_size)
            _write(order, plan, models if order.check else None, prepared.tensors, outcome)
        if models and given and outcome.agreement and not outcome.agreement.passed:
            outcome.faults += list_departures(given, models.derive()[0])
        outcome.remarks += [*prepared.remarks, *(models.remarks if models else [])]
        return outcome


def verify(
    order: Conversion, pair: ModelPair | None = None, given: WeightMap | None = None
) -> ConversionResult:
    """Compare `order.target`, which was converted before, with `order.source`; name each difference.

    The arguments and errors are those of `convert`; nothing is written.
    """
    if pair is None and given is None:
        raise ReprodError("nothing tells the names: give --pair FILE.py or --map FILE")
    files = order.open_source(), open_checkpoint(order.target)
    before = find_framework(files[0], order.source_framework, order.target)
    torch, paddle = files if before == "torch" else files[::-1]
    with work_with(pair) if pair is not None else nullcontext() as models:
        select = (order.select, "") if before == "torch" else ("", order.select)
        prepared = prepare(torch, "torch", select[0], models, given)
        plan = prepared.plan(models)
        state = choose_state(paddle.content, prepared.map.names("paddle"), select[1])
        differences = list(list_differences(plan, state.tensors))
        faults = [*prepared.faults, *plan.faults, *differences]
        outcome = ConversionResult(plan.rows, prepared.map, faults)
        outcome.remarks += prepared.remarks
        if models and order.check and not outcome.faults:
            outcome.agreement = models.compare(prepared.tensors, state.tensors)
        return outcome


@dataclass
class Prepared:
    """The tensors of the source under the names of the model, and the map."""

    before: str
    """the source's framework"""
    tensors: Mapping[str, Stored]
    map: WeightMap
    faults: list[str]
    remarks: list[str]
    lacking: frozenset[str] = frozenset()
    """tensors without a counterpart, which are among the faults"""

    def plan(self, models: Models | None) -> Plan:
        """Return the plan of converting the tensors to the other framework."""
        to = _name_other(self.before)
        if models is None:
            return make_plan(self.map, self.tensors, to)
        own = [name for rule in self.map.rules if not getattr(rule, self.before)
               for name in getattr(rule, to)]  # fmt: skip
        expected = models.saved[self.before].expected, models.saved[to].expected
        source = {name: held for name, held in self.tensors.items() if name not in self.lacking}
        return make_plan(self.map, source, to, expected, models.read_own_values(to, own))


def prepare(
    source: Checkpoint, before: str, select: str, models: Models | None, given: WeightMap | None
) -> Prepared:
    """Find the state dict in a checkpoint, and the map."""
    wanted = given.names(before) if given else list(models.saved[before].own) if models else []
    state = choose_state(source.content, wanted, select)
    faults = [] if select else [f"left over: {name}, beside {state.label}" for name in state.beside]
    remarks = [f"taken from {state.label!r}"] if state.label else []
    if given is not None:
        return Prepared(before, state.tensors, given, faults, remarks)
    assert models is not None
    if before == "torch":
        models.load(before, state.tensors)  # the forward passes that settle doubts run on these
    else:
        models.stir()
    found, lacking = models.derive()
    faults = [*lacking.values(), *faults]
    return Prepared(before, state.tensors, found, faults, remarks, frozenset(lacking))


def find_framework(source: Checkpoint, told: str, target: Path) -> str:
    """Return the framework of a checkpoint. Raises WeightsError if the target is of the same one."""
    kind = find_kind(target)
    before = told or source.framework or _name_other(kind)
    if kind == before:
        title = "PyTorch" if before == "torch" else "Paddle"
        raise WeightsError(
            f"{source.path} holds {title} weights, and {target.name} is a {title} file too: "
            "there is nothing to convert"
        )
    return before


def _name_other(framework: str) -> str:
    return "paddle" if framework == "torch" else "torch"


def _write(
    order: Conversion,
    plan: Plan,
    models: Models | None,
    tensors: Mapping[str, Stored],
    outcome: ConversionResult,
) -> None:
    """Write the file; it gets its name once the outputs of both models agree."""
    load, bar = Loader(plan), iter(track(plan.entries, "converting"))

    def load_next(name: str) -> Array:
        next(bar, None)
        return load(name)

    with suppress(_OutputsDiffer):
        with write_checkpoint(
            order.target, plan.to, plan.entries, load_next, order.shard_size
        ) as written:
            if models is not None:
                sides = tensors, written.tensors
                outcome.agreement = models.compare(*sides[:: 1 if plan.to == "paddle" else -1])
                if not outcome.agreement.passed:
                    raise _OutputsDiffer
        outcome.written = order.target
        size = sum(entry.nbytes for entry in plan.entries if not entry.tied_to)
        outcome.amount = f"{count(len(plan.entries), 'tensor')}, {size:,} bytes"
