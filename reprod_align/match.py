"""Pairs the tensors of two models: by the user's map, by name, by value, by structure and order.

What can't be paired is listed, never guessed; where two pairings are possible both are offered, and
whoever has the numbers decides (`Match.doubts`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import permutations

from reprod_align.errors import ReprodError
from reprod_align.layout import Lay, Shape, cut, interleaved, lays
from reprod_align.leaf import gap
from reprod_align.naming import is_number, is_within, parent, similarity, tokens
from reprod_align.side import ModelInfo, TensorInfo
from reprod_align.trace import Array, Trace

import numpy as np

_ROLES = {"_mean": "running_mean", "_variance": "running_var", "_weight": "weight"}
_SCALED = "InstanceNorm"  # Paddle calls its weight `scale`
_FUSED_ORDER = ("q", "k", "v")


@dataclass(frozen=True)
class TensorPair:
    """Tensors of the two models that hold the same numbers; mostly one on each side.

    Several on the Paddle side: the PyTorch tensor is cut along its first axis, and the other way.
    """

    torch: tuple[str, ...]
    paddle: tuple[str, ...]
    lay: tuple[Lay, ...]
    """one per part: how it lies on the Paddle side"""
    sizes: tuple[int, ...] = ()
    """lengths along the first axis, if the tensor is cut or joined"""
    turned: bool = False
    """PyTorch's tensors are (in, out), as GPT-2's Conv1D keeps them, and are cut or joined by outputs"""
    heads: int = 0
    """if not 0, the joined tensor's rows are stored head by head"""
    choices: tuple[tuple[Lay, ...], ...] = ()
    """other ways it could lie, where nothing but the numbers can tell"""

    def to_paddle(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Return what the Paddle tensors hold, given PyTorch's by name; also right for gradients."""
        ours = [arrays[name].T if self.turned else arrays[name] for name in self.torch]
        if len(self.torch) > 1:
            return {self.paddle[0]: self.lay[0](np.concatenate(ours))}
        whole = ours[0]
        if not self.sizes:
            return {self.paddle[0]: self.lay[0](whole)}
        ordered = interleaved(whole, self.heads, len(self.sizes)) if self.heads else whole
        parts = cut(ordered, self.sizes)
        return {
            name: lay(part) for name, lay, part in zip(self.paddle, self.lay, parts, strict=True)
        }


@dataclass(frozen=True)
class Owner:
    """A module with tensors of its own: what is paired first."""

    path: str
    kind: str
    tensors: Mapping[str, TensorInfo]
    """by role, in PyTorch's words"""
    axes: Mapping[str, str]
    """of its matrices, by role: "oi", "io" or "" (see layout.lays)"""


@dataclass
class Match:
    """The pairing, and what is left over."""

    pairs: list[TensorPair] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """modules that hold tensors: PyTorch's name -> Paddle's"""
    torch_left: list[str] = field(default_factory=list)
    paddle_left: list[str] = field(default_factory=list)
    doubts: list[tuple[tuple[str, ...], ...]] = field(default_factory=list)
    """groups of PyTorch owners whose partners could be exchanged, all groups of a pattern alike:
    names and order don't tell"""

    def by_torch(self) -> dict[str, TensorPair]:
        """Return the pair of every PyTorch tensor."""
        return {name: pair for pair in self.pairs for name in pair.torch}


@dataclass(frozen=True)
class Evidence:
    """One model as matching sees it."""

    info: ModelInfo
    order: Sequence[str]
    """the modules in the order in which they were first called"""
    prints: Mapping[str, tuple[float, float]]
    """of its weights: see _fingerprints"""
    owners: Mapping[str, Owner]


def evidence(
    info: ModelInfo, order: Sequence[str], values: Mapping[str, Array], framework: str
) -> Evidence:
    """Return a model's tensors grouped by the module that holds them, in calling order."""
    grouped: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for tensor in info.tensors.values():
        if tensor.role != "num_batches_tracked":
            grouped[tensor.owner][_role(info, tensor)] = tensor
    owners = {path: _owner(info, path, tensors, framework) for path, tensors in grouped.items()}
    places = _places(info, order)
    ordered = dict(sorted(owners.items(), key=lambda item: places[item[0]]))
    return Evidence(info, order, _fingerprints(values), ordered)


def match(torch: Evidence, paddle: Evidence, name_map: Mapping[str, str] | None = None) -> Match:
    """Pair the tensors of the two models. Raises ReprodError if the map names what isn't there."""
    found = Match()
    _by_map(found, torch, paddle, name_map or {})
    torch, paddle = opened(torch, paddle), opened(paddle, torch)
    _by_name(found, torch, paddle)
    _fused(found, torch, paddle)
    _by_order(found, torch, paddle)
    _ties(found, torch, paddle)
    _doubts(found, torch, paddle, name_map or {})
    used = {name for pair in found.pairs for name in (*pair.torch, *pair.paddle)}
    found.torch_left = [name for name in _names(torch) if name not in used]
    found.paddle_left = [name for name in _names(paddle) if name not in used]
    return found


def exchanged(found: Match, groups: Sequence[Sequence[str]], order: Sequence[int]) -> Match:
    """Return the match with the partners within each group exchanged, as `order` says."""
    target = {
        path: found.owners[group[place]]
        for group in groups
        for path, place in zip(group, order, strict=True)
    }
    moved = {}
    for path in target:
        for pair in found.pairs:
            if parent(pair.torch[0]) == path:
                moved[pair] = _moved(pair, found.owners[path], target[path])
    pairs = [moved.get(pair, pair) for pair in found.pairs]
    owners = {**found.owners, **target}
    return Match(pairs, owners, found.torch_left, found.paddle_left, found.doubts)


def orders(size: int) -> Iterator[tuple[int, ...]]:
    """Yield every order of `size` things but the present one."""
    yield from (order for order in permutations(range(size)) if order != tuple(range(size)))


def _moved(pair: TensorPair, owner: str, target: str) -> TensorPair:
    names = tuple(target + name[len(owner) :] for name in pair.paddle)
    return replace(pair, paddle=names)


# ---------------------------------------------------------------- what a model offers


def _names(side: Evidence) -> Iterator[str]:
    """Yield the names of tensors that need a partner: parameters and saved float buffers."""
    for tensor in side.info.tensors.values():
        statistic = tensor.is_float and tensor.is_persistent
        if tensor.tie == tensor.name and (tensor.is_parameter or statistic):
            if tensor.role != "num_batches_tracked":
                yield tensor.name


def _role(info: ModelInfo, tensor: TensorInfo) -> str:
    kind = info.modules[tensor.owner].kind
    if tensor.role == "scale" and kind.startswith(_SCALED):
        return "weight"
    return _ROLES.get(tensor.role, tensor.role)


def _owner(info: ModelInfo, path: str, tensors: dict[str, TensorInfo], framework: str) -> Owner:
    settings = info.modules[path]
    axes = {role: "" for role in tensors}
    weight = tensors.get("weight")
    if weight is not None:
        axes["weight"] = _axes(settings.kind, settings.class_name, framework)
    return Owner(path, settings.kind, tensors, axes)


def _axes(kind: str, class_name: str, framework: str) -> str:
    if kind == "Linear":
        return "oi" if framework == "PyTorch" else "io"
    if kind.startswith("Conv") and "Transpose" not in kind:
        return "oi"
    return "io" if class_name == "Conv1D" and not kind else ""  # the one of GPT-2's


def _places(info: ModelInfo, order: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return where each module stands: by first call; one never called stands by its parent."""
    called = {path: number for number, path in enumerate(order)}
    places: dict[str, tuple[int, int]] = {}
    for number, path in enumerate(info.modules):
        above = path
        while above not in called and above:
            above = parent(above)
        places[path] = called.get(above, -1), number
    return places


def opened(side: Evidence, other: Evidence) -> Evidence:
    """Return the side with attentions and recurrent networks opened up where the other has parts.

    torch's MultiheadAttention holds its projections itself; an LSTM holds what the other side may
    keep in one cell per layer and direction, or in two Linear layers per cell.
    """
    owners: dict[str, Owner] = {}
    for owner in side.owners.values():
        for part in _parts(owner, other):
            owners[part.path] = part
    return replace(side, owners=owners)


def _parts(owner: Owner, other: Evidence) -> list[Owner]:
    if any(role.startswith("in_proj") or role.endswith("_proj_weight") for role in owner.tensors):
        return [owner] if owner.path in other.owners else _projections(owner)
    roles = {role for theirs in other.owners.values() for role in theirs.tensors}
    if "weight_ih_l0" in owner.tensors and "weight_ih_l0" not in roles:
        cells = _cells(owner)
        return cells if "weight_ih" in roles else [g for cell in cells for g in _gates(cell)]
    if "weight_ih" in owner.tensors and not roles & {"weight_ih", "weight_ih_l0"}:
        return _gates(owner)
    return [owner]


def _projections(owner: Owner) -> list[Owner]:
    """Return the input projections of torch's attention as Linear layers."""
    parts: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for role, tensor in owner.tensors.items():
        name, _, kind = role.rpartition("_")
        parts[name if kind in ("weight", "bias") else role][kind] = tensor
    return [_linear(owner, name, tensors) for name, tensors in parts.items()]


def _cells(owner: Owner) -> list[Owner]:
    """Return a recurrent network's layers and directions as cells."""
    parts: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for role, tensor in owner.tensors.items():
        name, _, layer = role.partition("_l")
        parts[layer][name] = tensor
    return [
        Owner(f"{owner.path}.l{layer}", f"{owner.kind}Cell", tensors, dict.fromkeys(tensors, ""))
        for layer, tensors in parts.items()
    ]


def _gates(cell: Owner) -> list[Owner]:
    """Return a cell's two projections, of the input and of the state, as Linear layers."""
    parts: dict[str, dict[str, TensorInfo]] = defaultdict(dict)
    for role, tensor in cell.tensors.items():
        kind, _, name = role.partition("_")
        parts[name][kind] = tensor
    return [_linear(cell, name, tensors) for name, tensors in parts.items()]


def _linear(owner: Owner, name: str, tensors: dict[str, TensorInfo]) -> Owner:
    axes = {role: "oi" if role == "weight" else "" for role in tensors}
    return Owner(f"{owner.path}.{name}", "Linear", tensors, axes)


# ---------------------------------------------------------------- the ways of pairing


def _fit(torch: Owner, paddle: Owner) -> dict[str, tuple[str, list[Lay]]] | None:
    """Return {role: (Paddle's role, ways to lie)} of the tensors they share; None: no fit."""
    shared: dict[str, tuple[str, list[Lay]]] = {}
    names = _same_roles(torch, paddle)
    for role, other in names.items():
        ours, theirs = torch.tensors[role], paddle.tensors[other]
        ways = lays(ours.shape, theirs.shape, torch.axes[role], paddle.axes[other])
        if not ways:
            return None
        shared[role] = other, ways
    return shared or None


def _same_roles(torch: Owner, paddle: Owner) -> dict[str, str]:
    """Return which tensor of one owner is which of the other's: by role, lone ones by themselves."""
    names = {role: role for role in torch.tensors if role in paddle.tensors}
    ours = [role for role, tensor in torch.tensors.items() if role not in names]
    theirs = [role for role, tensor in paddle.tensors.items() if role not in names]
    if len(ours) == len(theirs) == 1 and (not names or not torch.kind):
        names[ours[0]] = theirs[0]
    return names


def _join(found: Match, torch: Owner, paddle: Owner) -> bool:
    fit = _fit(torch, paddle)
    if fit is None:
        return False
    found.owners[torch.path] = paddle.path
    for role, (other, ways) in fit.items():
        names = (torch.tensors[role].name,), (paddle.tensors[other].name,)
        choices = tuple((way,) for way in ways[1:])
        found.pairs.append(TensorPair(*names, (ways[0],), choices=choices))
    return True


def _by_map(found: Match, torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]) -> None:
    _check_map(torch, paddle, name_map)
    owners = {path: _mapped(path, name_map) for path in torch.owners}
    for path, target in owners.items():
        if target is not None and target in paddle.owners:
            _join(found, torch.owners[path], paddle.owners[target])
    paired = found.by_torch()
    for name, target in name_map.items():
        ours, theirs = torch.info.tensors.get(name), paddle.info.tensors.get(target)
        if ours is not None and theirs is not None and name not in paired:
            _pair_mapped(found, torch, paddle, ours, theirs)


def _pair_mapped(
    found: Match, torch: Evidence, paddle: Evidence, ours: TensorInfo, theirs: TensorInfo
) -> None:
    first, second = torch.owners[ours.owner], paddle.owners[theirs.owner]
    axes = first.axes[_role(torch.info, ours)], second.axes[_role(paddle.info, theirs)]
    ways = lays(ours.shape, theirs.shape, *axes)
    if not ways:
        raise ReprodError(
            f"name_map pairs {ours.name} {ours.shape} with {theirs.name} {theirs.shape}: "
            "one does not fit the other"
        )
    choices = tuple((way,) for way in ways[1:])
    found.pairs.append(TensorPair((ours.name,), (theirs.name,), (ways[0],), choices=choices))
    found.owners.setdefault(ours.owner, theirs.owner)


def _check_map(torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]) -> None:
    for side, names, framework in (
        (torch, name_map.keys(), "PyTorch"),
        (paddle, name_map.values(), "Paddle"),
    ):
        known = [*side.info.modules, *side.info.tensors]
        for name in names:
            if not any(is_within(other, name) for other in known):
                raise ReprodError(f"name_map names {name!r}, which the {framework} model has not")


def _mapped(path: str, name_map: Mapping[str, str]) -> str | None:
    """Return the name under the longest prefix that the map holds, None if it holds none."""
    for prefix in sorted(name_map, key=len, reverse=True):
        if is_within(path, prefix):
            rest = path[len(prefix) :].lstrip(".")
            return ".".join(part for part in (name_map[prefix], rest) if part)
    return None


def _by_name(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair owners of the same name; numbered ones only where both sides number the same set."""
    taken = set(found.owners.values())
    ours = {path for path in torch.owners if path not in found.owners}
    theirs = {path for path in paddle.owners if path not in taken}
    doubtful = _renumbered(ours, theirs)
    for path in torch.owners:
        if path in ours and path in theirs and not any(is_within(path, d) for d in doubtful):
            _join(found, torch.owners[path], paddle.owners[path])


def _renumbered(ours: set[str], theirs: set[str]) -> set[str]:
    """Return the numbered modules whose parents number their children differently on each side."""
    sets: list[dict[str, set[str]]] = [defaultdict(set), defaultdict(set)]
    for side, paths in zip(sets, (ours, theirs), strict=True):
        for path in paths:
            while path:
                if is_number(path):
                    side[parent(path)].add(path)
                path = parent(path)
    first, second = sets
    return {
        path
        for above in first.keys() | second.keys()
        if first[above] != second[above]
        for path in first[above] | second[above]
    }


def _by_order(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Align the owners that are left as two sequences, then settle equals by name."""
    taken = set(found.owners.values())
    ours = [o for o in torch.owners.values() if o.path not in found.owners and _is_own(o)]
    theirs = [o for o in paddle.owners.values() if o.path not in taken and _is_own(o)]
    names = _paired_names(found)
    ours, theirs = ([o for o in side if not _is_taken(o, names)] for side in (ours, theirs))
    if not ours or not theirs:
        return
    called = _sequence(ours, theirs, torch, paddle)
    places = [{path: at for at, path in enumerate(s.info.modules)} for s in (torch, paddle)]
    defined = _sequence(
        sorted(ours, key=lambda o: _defined(o, places[0])),
        sorted(theirs, key=lambda o: _defined(o, places[1])),
        torch,
        paddle,
    )
    best = max((called, defined), key=lambda pairs: sum(score for *_, score in pairs))
    for first, second, _ in best:
        _join(found, first, second)


def _defined(owner: Owner, places: Mapping[str, int]) -> int:
    path = owner.path
    while path not in places:  # a part of an opened module
        path = parent(path)
    return places[path]


def _sequence(
    ours: Sequence[Owner], theirs: Sequence[Owner], torch: Evidence, paddle: Evidence
) -> list[tuple[Owner, Owner, float]]:
    """Return the pairs of two sequences, with their scores."""
    scores = np.array([[_score(t, p, torch, paddle) for p in theirs] for t in ours])
    aligned = _aligned(scores)
    rows = {row for row, _ in aligned}  # what is paired out of order speaks for neither order
    return [
        (ours[row], theirs[column], float(scores[row, column]) if row in rows else 0.0)
        for row, column in _settled(aligned, scores, ours, theirs)
    ]


def _is_own(owner: Owner) -> bool:
    """Tell whether the owner holds a tensor of its own that is not another's under a second name."""
    return any(tensor.tie == tensor.name for tensor in owner.tensors.values())


def _score(torch: Owner, paddle: Owner, ours: Evidence, theirs: Evidence) -> float:
    """Return how well two owners go together; below 0: not at all."""
    fit = _fit(torch, paddle)
    if fit is None or not _same_family(torch.kind, paddle.kind):
        return -1.0
    missing = len(torch.tensors.keys() ^ paddle.tensors.keys())
    alike = similarity(torch.path, paddle.path)
    value = 4.0 if _equal_values(torch, paddle, fit, ours, theirs) else 0.0
    return 2.0 + alike + value - 0.2 * min(missing, 4)


def _same_family(torch: str, paddle: str) -> bool:
    """Tell whether layers of these kinds can hold the same weights; "" is a user's own class."""
    if not torch or not paddle or torch == paddle:
        return True
    first, second = (kind.rstrip("123d") for kind in (torch, paddle))
    mixable = ({"Linear", "Conv"}, {"LayerNorm", "RMSNorm"}, {"GroupNorm", "InstanceNorm"})
    return first == second or any({first, second} <= family for family in mixable)


def _equal_values(
    torch: Owner,
    paddle: Owner,
    fit: Mapping[str, tuple[str, list[Lay]]],
    ours: Evidence,
    theirs: Evidence,
) -> bool:
    """Tell whether the weights are the same numbers already, and not constant ones."""
    told = False
    for role, (other, _) in fit.items():
        expected = ours.prints.get(torch.tensors[role].name)
        actual = theirs.prints.get(paddle.tensors[other].name)
        if expected is not None and actual is not None:
            if not np.allclose(expected, actual, rtol=1e-6, atol=0):
                return False
            told = True
    return told


def _fingerprints(values: Mapping[str, Array]) -> dict[str, tuple[float, float]]:
    """Return two numbers of each matrix that stay the same when it is transposed; constant ones none."""
    return {
        name: (float(np.abs(array).sum()), float(np.square(array).sum()))
        for name, array in values.items()
        if array.ndim >= 2 and array.size >= 4 and array.dtype.kind == "f"
        and (array != array.flat[0]).any()
    }  # fmt: skip


def _aligned(scores: Array) -> list[tuple[int, int]]:
    """Return the pairs (row, column), both ascending, with the largest sum of scores."""
    rows, columns = scores.shape
    best = np.zeros((rows + 1, columns + 1))
    for row in range(rows - 1, -1, -1):
        for column in range(columns - 1, -1, -1):
            score = scores[row, column]
            paired = score + best[row + 1, column + 1] if score >= 0 else -1.0
            best[row, column] = max(paired, best[row + 1, column], best[row, column + 1])
    pairs, row, column = [], 0, 0
    while row < rows and column < columns:
        score = scores[row, column]
        if score >= 0 and best[row, column] == score + best[row + 1, column + 1]:
            pairs.append((row, column))
            row, column = row + 1, column + 1
        elif best[row, column] == best[row + 1, column]:
            row += 1
        else:
            column += 1
    return pairs


def _settled(
    pairs: list[tuple[int, int]], scores: Array, ours: Sequence[Owner], theirs: Sequence[Owner]
) -> list[tuple[int, int]]:
    """Exchange partners within groups of equals where names or values say so; add what was left."""
    paired = dict(pairs)
    columns = set(paired.values())
    for groups in _groups(paired, ours, theirs):
        size = len(groups[0])
        present = tuple(range(size))

        def worth(order: tuple[int, ...], groups: list[list[int]] = groups) -> float:
            return sum(_total(scores, g, [paired[g[at]] for at in order]) for g in groups)

        best = max(permutations(present), key=worth)
        if worth(best) > worth(present):
            for group in groups:
                paired.update(zip(group, [paired[group[at]] for at in best], strict=True))
    for row in range(len(ours)):
        free = [c for c in range(len(theirs)) if c not in columns and scores[row, c] >= 0]
        if row not in paired and free:
            paired[row] = max(free, key=lambda column: float(scores[row, column]))
            columns.add(paired[row])
    return sorted(paired.items())


def _total(scores: Array, rows: Sequence[int], columns: Sequence[int]) -> float:
    picked = [float(scores[row, column]) for row, column in zip(rows, columns, strict=True)]
    return sum(picked) if min(picked) >= 0 else -1.0


def _groups(
    paired: Mapping[int, int], ours: Sequence[Owner], theirs: Sequence[Owner]
) -> Iterator[list[list[int]]]:
    """Yield rows that look alike and stand under one parent on both sides, up to six at a time.

    Groups of one pattern, which repeat from block to block, come together: what is exchanged in
    one is exchanged in all, so that a mistake made in a single block is not taken for a convention.
    """
    groups: dict[tuple[str, str, tuple[Shape, ...]], list[int]] = defaultdict(list)
    for row, column in paired.items():
        shapes = tuple(sorted(tensor.shape for tensor in ours[row].tensors.values()))
        groups[parent(ours[row].path), parent(theirs[column].path), shapes].append(row)
    patterns: dict[object, list[list[int]]] = defaultdict(list)
    for (above, beside, shapes), rows in groups.items():
        if 2 <= len(rows) <= 6:
            key = _pattern(above), _pattern(beside), shapes, len(rows)
            patterns[key].append(rows)
    yield from patterns.values()


def _pattern(path: str) -> str:
    """Return the path with its numbers left out."""
    return ".".join("#" if part.isdigit() else part for part in path.split("."))


def _fused(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair a tensor that one side keeps whole with the parts that the other keeps apart."""
    for whole_is_torch in (True, False):
        wholes, parts = (torch, paddle) if whole_is_torch else (paddle, torch)
        for owner in wholes.owners.values():
            names = _paired_names(found)
            if _is_taken(owner, names):
                continue
            free = [o for o in parts.owners.values() if not _is_taken(o, names)]
            if any(_fits(owner, o, whole_is_torch) for o in free):
                continue
            for role, tensor in owner.tensors.items():
                if tensor.is_parameter and len(tensor.shape) in (1, 2):
                    _split(found, owner, role, list(parts.owners.values()), whole_is_torch)


def _paired_names(found: Match) -> set[str]:
    return {name for pair in found.pairs for name in (*pair.torch, *pair.paddle)}


def _is_taken(owner: Owner, names: Set[str]) -> bool:
    return any(tensor.name in names for tensor in owner.tensors.values())


def _fits(whole: Owner, part: Owner, whole_is_torch: bool) -> bool:
    torch, paddle = (whole, part) if whole_is_torch else (part, whole)
    return _fit(torch, paddle) is not None and _same_family(torch.kind, paddle.kind)


def _split(
    found: Match, whole: Owner, role: str, free: Sequence[Owner], whole_is_torch: bool
) -> None:
    """Find owners, called one after another, whose tensors make up the whole; join them."""
    tensor = whole.tensors[role]
    wanted = "bias" if len(tensor.shape) == 1 else "weight"
    paired = _paired_names(found)
    candidates = [o for o in free if wanted in o.tensors and o.tensors[wanted].name not in paired]
    runs = list(_runs(candidates, wanted, tensor.shape, _out_axis(whole, role)))

    def likely(run: list[Owner]) -> tuple[int, float]:
        return _fused_rank(run), similarity(parent(whole.path), parent(run[0].path))

    for run in sorted(runs, key=likely, reverse=True):
        ordered = _in_fused_order(run)
        found.pairs.append(_joined_pair(whole, role, ordered, wanted, whole_is_torch))
        return


def _out_axis(owner: Owner, role: str) -> int:
    return 1 if owner.axes.get(role) == "io" and len(owner.tensors[role].shape) == 2 else 0


def _runs(
    owners: Sequence[Owner], role: str, shape: tuple[int, ...], axis: int
) -> Iterator[list[Owner]]:
    """Yield two or three owners in a row whose outputs add up to the whole's."""
    rest = _without(shape, axis)
    for size in (3, 2):
        for start in range(len(owners) - size + 1):
            run = list(owners[start : start + size])
            shapes = [(owner.tensors[role].shape, _out_axis(owner, role)) for owner in run]
            outs = sum(shape[axis] for shape, axis in shapes)
            if outs == shape[axis] and {_without(*each) for each in shapes} == {rest}:
                yield run


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _fused_rank(run: Sequence[Owner]) -> int:
    """Return how many of the run are named q, k or v, each once."""
    words = [[w for w in tokens(owner.path) if w in _FUSED_ORDER][-1:] for owner in run]
    return len({word[0] for word in words if word})


def _in_fused_order(run: list[Owner]) -> list[Owner]:
    """Return q, k, v in that order where the names say which is which."""
    known = {word: owner for owner in run for word in tokens(owner.path) if word in _FUSED_ORDER}
    ordered = [known[word] for word in _FUSED_ORDER if word in known]
    return ordered if len(ordered) == len(run) else run


def _joined_pair(
    whole: Owner, role: str, parts: Sequence[Owner], wanted: str, whole_is_torch: bool
) -> TensorPair:
    tensor, tensors = whole.tensors[role], [part.tensors[wanted] for part in parts]
    names = tuple(part.name for part in tensors)
    flips = [_out_axis(part, wanted) == 1 for part in parts]
    sizes = tuple(t.shape[_out_axis(o, wanted)] for o, t in zip(parts, tensors, strict=True))
    flipped = _out_axis(whole, role) == 1
    if whole_is_torch:
        laid = tuple(Lay(flip, part.shape) for flip, part in zip(flips, tensors, strict=True))
        return TensorPair((tensor.name,), names, laid, sizes, turned=flipped)
    return TensorPair(names, (tensor.name,), (Lay(flipped, tensor.shape),), sizes, turned=flips[0])


def _ties(found: Match, torch: Evidence, paddle: Evidence) -> None:
    """Pair what is one tensor under two names on one side and two tensors on the other."""
    paired = _paired_names(found)
    for name, tensor in torch.info.tensors.items():
        twin = paddle.info.tensors.get(name)
        if twin is None or name in paired:
            continue
        if tensor.tie != name and twin.tie == name and twin.owner in paddle.owners:
            _pair_mapped(found, torch, paddle, tensor, twin)


def _doubts(found: Match, torch: Evidence, paddle: Evidence, name_map: Mapping[str, str]) -> None:
    """Note groups of look-alikes whose names say nothing about which is which."""
    groups: dict[tuple[str, str, tuple[Shape, ...]], list[str]] = defaultdict(list)
    for path, partner in found.owners.items():
        if _mapped(path, name_map) is not None or path not in torch.owners:
            continue
        shapes = tuple(sorted(t.shape for t in torch.owners[path].tensors.values()))
        groups[parent(path), parent(partner), shapes].append(path)
    patterns: dict[object, list[tuple[str, ...]]] = defaultdict(list)
    for (above, beside, shapes), paths in groups.items():
        if 2 <= len(paths) <= 4 and not _names_tell(paths, found.owners):
            key = _pattern(above), _pattern(beside), shapes, len(paths)
            patterns[key].append(tuple(paths))
    found.doubts += [tuple(groups) for groups in patterns.values()]


def _names_tell(paths: Sequence[str], owners: Mapping[str, str]) -> bool:
    """Tell whether each path is more like its own partner than like any other of the group."""
    if all(path == owners[path] for path in paths):
        return True
    return all(
        similarity(path, owners[path]) > similarity(path, owners[other])
        for path in paths
        for other in paths
        if other != path
    )


def module_pairs(found: Match, torch: Evidence, paddle: Evidence) -> dict[str, str]:
    """Return every module that has a counterpart: PyTorch's name -> Paddle's."""
    pairs = {"": "", **_own_modules(found, torch, paddle)}
    _by_content(pairs, torch.info, paddle.info)
    _by_same_name(pairs, torch.info, paddle.info)
    _by_place(pairs, torch, paddle)
    return pairs


def _own_modules(found: Match, torch: Evidence, paddle: Evidence) -> dict[str, str]:
    return {
        ours: theirs
        for ours, theirs in found.owners.items()
        if ours in torch.info.modules
        and theirs in paddle.info.modules
        and _is_leaf(ours, torch.info) == _is_leaf(theirs, paddle.info)
    }


def _is_leaf(path: str, info: ModelInfo) -> bool:
    return not any(parent(other) == path and other for other in info.modules)


def _by_content(pairs: dict[str, str], torch: ModelInfo, paddle: ModelInfo) -> None:
    """Pair composites that hold the same paired modules, outer ones with outer ones."""
    taken = set(pairs.values())
    ours = _contents(torch, pairs, {path: path for path in pairs})
    theirs = _contents(paddle, taken, {target: path for path, target in pairs.items()})
    for content, paths in ours.items():
        others = [path for path in theirs.get(content, []) if path not in taken]
        free = [path for path in paths if path not in pairs]
        chosen = _chained(free, others)
        pairs.update(chosen)
        taken.update(chosen.values())


def _contents(
    info: ModelInfo, known: Iterable[str], names: Mapping[str, str]
) -> dict[frozenset[str], list[str]]:
    """Return the composites by the set of paired modules they hold, under PyTorch's names."""
    inside: dict[str, set[str]] = defaultdict(set)
    for path in known:
        above = path
        while above:
            above = parent(above)
            inside[above].add(names[path])
    contents: dict[frozenset[str], list[str]] = defaultdict(list)
    for path in info.modules:
        if path and inside.get(path):
            contents[frozenset(inside[path])].append(path)
    return contents


def _chained(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Pair nested composites of equal content: by name if they share it, else in nesting order."""
    if len(ours) == len(theirs):
        return dict(zip(ours, theirs, strict=True))
    if not ours or not theirs:
        return {}
    few, many = (ours, theirs) if len(ours) < len(theirs) else (theirs, ours)
    chosen: dict[str, str] = {}
    rest = list(many)
    for path in few:
        best = max(rest, key=lambda other: similarity(path, other))
        chosen[path] = best
        rest = rest[rest.index(best) + 1 :]
        if not rest:
            break
    return chosen if few is ours else {theirs: ours for ours, theirs in chosen.items()}


def _by_same_name(pairs: dict[str, str], torch: ModelInfo, paddle: ModelInfo) -> None:
    """Pair modules of one name under parents that are paired, unless their kinds forbid it."""
    taken = set(pairs.values())
    for path in torch.modules:
        above = parent(path)
        if path in pairs or above not in pairs:
            continue
        name = path.rpartition(".")[2]
        target = f"{pairs[above]}.{name}" if pairs[above] else name
        numbered = is_number(path) and _child_names(torch, above) != _child_names(
            paddle, pairs[above]
        )
        if target in paddle.modules and target not in taken and not numbered:
            pairs[path] = target
            taken.add(target)


def _child_names(info: ModelInfo, path: str) -> set[str]:
    return {p.rpartition(".")[2] for p in info.modules if p and parent(p) == path}


def _by_place(pairs: dict[str, str], torch: Evidence, paddle: Evidence) -> None:
    """Pair what holds no tensors by kind and order among the children of paired modules."""
    taken = set(pairs.values())
    for above, partner in list(pairs.items()):
        ours = [p for p in _children(torch, above) if p not in pairs]
        theirs = [p for p in _children(paddle, partner) if p not in taken]
        kinds = [
            [_kind(side.info, p) for p in paths]
            for side, paths in ((torch, ours), (paddle, theirs))
        ]
        if not ours or not theirs:
            continue
        scores = np.array([[_alike(a, b, p, q) for b, q in zip(kinds[1], theirs, strict=True)]
                           for a, p in zip(kinds[0], ours, strict=True)])  # fmt: skip
        for row, column in _aligned(scores):
            pairs[ours[row]] = theirs[column]
            taken.add(theirs[column])


def _alike(ours: str, theirs: str, path: str, other: str) -> float:
    return 1.0 + similarity(path, other) if ours == theirs else -1.0


def _kind(info: ModelInfo, path: str) -> str:
    settings = info.modules[path]
    return settings.kind or settings.class_name


def _children(side: Evidence, path: str) -> list[str]:
    places = _places(side.info, side.order)
    own = [p for p in side.info.modules if p and parent(p) == path]
    return sorted(own, key=lambda p: places[p])


def leaves_without_tensors(info: ModelInfo) -> set[str]:
    """Return the modules that hold neither children nor tensors: dropouts, activations, pools."""
    parents = {parent(path) for path in info.modules if path}
    owners = {tensor.owner for tensor in info.tensors.values()}
    return {path for path in info.modules if path and path not in parents and path not in owners}


def certain_places(pairs: Mapping[str, str], torch: Evidence, paddle: Evidence) -> dict[str, str]:
    """Return the pairs (Paddle's name -> PyTorch's) at which random draws can be told apart by place.

    A dropout layer counts only where all such layers of its parent that are called have the same
    names on both sides: which of several is which is otherwise a guess, and their order within the
    parent tells.
    """
    ours, theirs = (
        leaves_without_tensors(side.info) & set(side.order or side.info.modules)
        for side in (torch, paddle)
    )
    silent = leaves_without_tensors(torch.info)
    sure = {}
    for path, other in pairs.items():
        above, beside = parent(path), parent(other)
        names = [{p.rpartition(".")[2] for p in side if parent(p) == at}
                 for side, at in ((ours, above), (theirs, beside))]  # fmt: skip
        if path not in silent or (names[0] == names[1] and pairs.get(above) == beside):
            sure[other] = path
    return sure


def pair_by_value(
    pairs: dict[str, str], torch: Evidence, paddle: Evidence, expected: Trace, actual: Trace
) -> None:
    """Pair what holds no tensors anew by what came out of it, where names do not tell.

    expected, actual: traces in eval mode from the same weights. Within one pair of parents, modules
    of one kind whose outputs are equal are the same, in whatever order they stand.
    """
    ours, theirs = leaves_without_tensors(torch.info), leaves_without_tensors(paddle.info)
    values = [
        {call.path: leaf.array for call in trace.calls if call.index == 0
         for leaf in list(call.outputs.values())[:1]}
        for trace in (expected, actual)
    ]  # fmt: skip
    for above, beside in list(pairs.items()):
        first = [p for p in ours if parent(p) == above and p in values[0]]
        second = [p for p in theirs if parent(p) == beside and p in values[1]]
        named = {p.rpartition(".")[2] for p in first} == {p.rpartition(".")[2] for p in second}
        if not named:
            _regroup(pairs, first, second, values, torch.info, paddle.info)


def _regroup(
    pairs: dict[str, str],
    first: Sequence[str],
    second: Sequence[str],
    values: Sequence[Mapping[str, Array]],
    torch: ModelInfo,
    paddle: ModelInfo,
) -> None:
    equal: dict[str, list[str]] = {
        p: [q for q in second if _kind(torch, p) == _kind(paddle, q)
            and gap(values[0][p], values[1][q]).ok] for p in first
    }  # fmt: skip
    claimed = [q for found in equal.values() for q in found]
    for path, found in equal.items():
        if len(found) == 1 and claimed.count(found[0]) == 1:
            for other in [p for p, q in pairs.items() if q == found[0]]:
                del pairs[other]
            pairs[path] = found[0]
