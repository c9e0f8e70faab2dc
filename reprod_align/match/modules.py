"""Pairs modules: those whose tensors are paired, those around them, and those without tensors.

Where names and tensors do not tell which is which, the modules' outputs do. From the pairs follows which of
Paddle's layers have one of PyTorch's activations built in (`BatchNorm(8, act="relu")`), and in which modules
both sides' random draws can be told apart by place.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.base.text import (
    ancestors,
    is_number,
    is_within,
    last_part,
    parent,
    similarity,
    tokens,
)
from reprod_align.match.evidence import Evidence
from reprod_align.match.owners import align_sequences, is_taken
from reprod_align.match.tensor_pair import Match
from reprod_align.model.side import ModelInfo
from reprod_align.model.trace import Call, Trace

import numpy as np

_NAMES = {"swish": "silu"}
"""Paddle's name of an activation -> PyTorch's class, in lower case"""
DrawnShapes = Mapping[Any, tuple[int, ...]]
"""((module, its call), number of the draw) -> shape, in the order of the draws (Trace.drawn)"""


def pair_modules(found: Match, torch: Evidence, paddle: Evidence) -> dict[str, str]:
    """Return every module that has a counterpart: PyTorch's name -> Paddle's, each named once."""
    owners, above = _list_owners(found, torch, paddle), _list_children(torch.info)
    leaves = {path: target for path, target in owners if path not in above}
    pairs = {"": "", **leaves, **found.modules}
    _pair_by_content(pairs, torch, paddle)
    taken = set(pairs.values())
    for path, target in owners:  # what holds other modules too
        if path not in pairs and target not in taken:
            pairs[path] = target
            taken.add(target)
    _pair_by_same_name(pairs, torch.info, paddle.info)
    _pair_by_place(pairs, torch, paddle, found.paired_names())
    return pairs


def are_same_kind(torch: ModelInfo, path: str, paddle: ModelInfo, other: str) -> bool:
    """Tell whether two modules are the same layer, or of classes with the same name."""
    ours, theirs = torch.modules[path], paddle.modules[other]
    return (ours.kind or ours.class_name) == (theirs.kind or theirs.class_name)


def list_bare_leaves(info: ModelInfo) -> set[str]:
    """Return the modules that hold neither children nor tensors: dropouts, activations, pools."""
    parents = {parent(path) for path in info.modules if path}
    owners = {tensor.owner for tensor in info.tensors.values()}
    return {path for path in info.modules if path and path not in parents and path not in owners}


def _list_owners(found: Match, torch: Evidence, paddle: Evidence) -> list[tuple[str, str]]:
    """Return the pairs of owners that are modules, and alike in whether they hold others."""
    above, beside = _list_children(torch.info), _list_children(paddle.info)
    return [
        (ours, theirs)
        for ours, theirs in found.owners.items()
        if ours in torch.info.modules
        and theirs in paddle.info.modules
        and (ours in above) == (theirs in beside)
    ]


def _pair_by_content(pairs: dict[str, str], torch: Evidence, paddle: Evidence) -> None:
    """Pair composites that hold the same paired modules, outer ones with outer ones.

    What is called goes with what is called, and a list of modules with a list.
    """
    ours = _group_by_content(torch.info, pairs, {path: path for path in pairs})
    names = {target: path for path, target in pairs.items()}
    theirs = _group_by_content(paddle.info, names, names)
    called = _list_called(torch), _list_called(paddle)
    for content, paths in ours.items():
        others = theirs.get(content, [])
        for kinds in (True, True), (False, False), (True, False), (False, True):
            taken = set(pairs.values())
            free = [p for p in paths if p not in pairs and (p in called[0]) == kinds[0]]
            left = [p for p in others if p not in taken and (p in called[1]) == kinds[1]]
            pairs.update(_pair_nested(free, left))


def _list_called(side: Evidence) -> set[str]:
    """Return the modules that were called; all, if it is not known."""
    return set(side.order or side.info.modules)


def _group_by_content(
    info: ModelInfo, known: Iterable[str], names: Mapping[str, str]
) -> dict[frozenset[str], list[str]]:
    """Return the composites by the set of paired modules they hold, under PyTorch's names."""
    inside: dict[str, set[str]] = defaultdict(set)
    for path in known:
        for above in ancestors(path):
            inside[above].add(names[path])
    contents: dict[frozenset[str], list[str]] = defaultdict(list)
    for path in info.modules:
        if path and inside.get(path):
            contents[frozenset(inside[path])].append(path)
    return contents


def _pair_nested(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Pair nested composites of equal content: by their own name if they share it, else outer first."""
    if len(ours) == len(theirs):
        return dict(zip(ours, theirs, strict=True))
    if not ours or not theirs:
        return {}
    few, many = (ours, theirs) if len(ours) < len(theirs) else (theirs, ours)
    chosen: dict[str, str] = {}
    rest = list(many)
    for path in few:
        own = tokens(last_part(path))
        best = max(rest, key=lambda other: tokens(last_part(other)) == own)
        chosen[path] = best
        rest = rest[rest.index(best) + 1 :]
        if not rest:
            break
    return chosen if few is ours else {theirs: ours for ours, theirs in chosen.items()}


def _pair_by_same_name(pairs: dict[str, str], torch: ModelInfo, paddle: ModelInfo) -> None:
    """Pair modules of one name under parents that are paired, unless their kinds forbid it."""
    taken = set(pairs.values())
    ours, theirs = _list_children(torch), _list_children(paddle)
    for path in torch.modules:
        above = parent(path)
        if path in pairs or above not in pairs:
            continue
        name = last_part(path)
        target = f"{pairs[above]}.{name}" if pairs[above] else name
        here, there = (
            {last_part(p) for p in group} for group in (ours[above], theirs[pairs[above]])
        )
        renumbered = is_number(path) and here != there
        if target in paddle.modules and target not in taken and not renumbered:
            pairs[path] = target
            taken.add(target)


def _list_children(info: ModelInfo) -> dict[str, list[str]]:
    """Return the modules right in each module; what torch parametrizes counts as holding none."""
    children: dict[str, list[str]] = defaultdict(list)
    for path in info.modules:
        if path and "parametrizations" not in path.split("."):
            children[parent(path)].append(path)
    return children


def _pair_by_place(
    pairs: dict[str, str], torch: Evidence, paddle: Evidence, paired: set[str]
) -> None:
    """Pair what holds no paired tensors by kind and order among the children of paired modules."""
    taken = set(pairs.values())
    below = [side.in_order(_list_children(side.info)) for side in (torch, paddle)]
    settled = [{p for p, owner in side.owners.items() if is_taken(owner, paired)}
               for side in (torch, paddle)]  # fmt: skip
    for above, partner in list(pairs.items()):
        ours = [p for p in below[0].get(above, ()) if p not in pairs and p not in settled[0]]
        theirs = [p for p in below[1].get(partner, ()) if p not in taken and p not in settled[1]]
        if not ours or not theirs:
            continue
        scores = np.array(
            [[_rate_kinds(torch.info, paddle.info, p, q) for q in theirs] for p in ours]
        )
        for row, column in align_sequences(scores):
            pairs[ours[row]] = theirs[column]
            taken.add(theirs[column])


def _rate_kinds(torch: ModelInfo, paddle: ModelInfo, path: str, other: str) -> float:
    return 1.0 + similarity(path, other) if are_same_kind(torch, path, paddle, other) else -1.0


@dataclass(frozen=True)
class _FirstOutputs:
    """The first tensor that each module returned, by the module's path, in calling order."""

    torch: Mapping[str, Array]
    paddle: Mapping[str, Array]

    def agree(self, path: str, other: str) -> bool:
        """Tell whether two modules returned the same; also True if one of them returned nothing."""
        if path not in self.torch or other not in self.paddle:
            return True
        return gap(self.torch[path], self.paddle[other]).ok


def pair_by_value(
    pairs: dict[str, str], torch: Evidence, paddle: Evidence, expected: Trace, actual: Trace
) -> None:
    """Correct the pairs of modules without tensors of their own, by the values in two traces.

    expected, actual: traces in eval mode from the same weights. Of composites nested in each other
    the one with equal outputs is the counterpart. Within one pair of parents, modules of one kind
    whose outputs are equal are the same, in whatever order they stand.
    """
    outputs = _FirstOutputs(_find_first_outputs(expected), _find_first_outputs(actual))
    _correct_composites(pairs, outputs, torch.owners)
    ours, theirs = list_bare_leaves(torch.info), list_bare_leaves(paddle.info)
    for above, beside in list(pairs.items()):
        first = [path for path in ours if parent(path) == above and path in outputs.torch]
        second = [path for path in theirs if parent(path) == beside and path in outputs.paddle]
        if set(map(last_part, first)) != set(map(last_part, second)):
            fitting = {
                path: [q for q in second
                       if are_same_kind(torch.info, path, paddle.info, q) and outputs.agree(path, q)]
                for path in first
            }  # fmt: skip
            _pair_unambiguous(pairs, fitting)


def _find_first_outputs(trace: Trace) -> dict[str, Array]:
    first_calls = (call for call in trace.calls if call.index == 0 and call.outputs)
    return {call.path: next(iter(call.outputs.values())).array for call in first_calls}


def _correct_composites(
    pairs: dict[str, str], outputs: _FirstOutputs, holders: Collection[str]
) -> None:
    """Correct pairs of modules whose outputs differ because one side nests its modules deeper.

    holders: PyTorch's modules with tensors. The right counterpart of such a module lies around it or
    right in it, is unpaired so far, returns the same, and holds as many of the same layers. If there is
    none, and the two hold and end with different layers, they do different things, and neither has one.
    """
    for path, other in list(pairs.items()):
        if not path or not other or outputs.agree(path, other):
            continue
        layers = {ours: theirs for ours, theirs in pairs.items() if ours in holders}
        corrected = _find_nested(path, other, pairs, layers, outputs)
        if corrected is None and not _do_different_things(path, other, layers, outputs):
            continue
        if corrected is None or corrected[0] != path:
            del pairs[path]
        if corrected is not None:
            pairs[corrected[0]] = corrected[1]


def _find_nested(
    path: str,
    other: str,
    pairs: Mapping[str, str],
    layers: Mapping[str, str],
    outputs: _FirstOutputs,
) -> tuple[str, str] | None:
    """Return the pair with equal outputs that has another module on one of the sides, near the old.

    Without its summand `x + mlp(x)` returns what its `mlp` returns, and holds more than that.
    """
    ours = _list_unpaired_near(path, pairs.keys(), outputs.torch)
    theirs = _list_unpaired_near(other, pairs.values(), outputs.paddle)
    candidates = [*((near, other) for near in ours), *((path, near) for near in theirs)]
    apart = _count_apart(path, other, layers)
    fitting = (pair for pair in candidates if _count_apart(*pair, layers) <= apart)
    return next((pair for pair in fitting if outputs.agree(*pair)), None)


def _count_apart(path: str, other: str, layers: Mapping[str, str]) -> int:
    """Return how many paired layers only one of two modules holds."""
    return sum(is_within(p, path) != is_within(q, other) for p, q in layers.items())


def _list_unpaired_near(
    path: str, paired: Collection[str], known: Mapping[str, Array]
) -> list[str]:
    """Return the unpaired modules around a module, up to the first paired one, and right in it.

    known: the modules with an output; a list of modules, which is never called, has none.
    """
    around = takewhile(lambda above: above not in paired, ancestors(path))
    within = [inner for inner in known if parent(inner) == path and inner not in paired]
    return [above for above in around if above in known] + within


def _do_different_things(
    path: str, other: str, layers: Mapping[str, str], outputs: _FirstOutputs
) -> bool:
    """Tell whether two composites hold different layers with tensors, and call different ones last."""
    if not _count_apart(path, other, layers):
        return False
    ours = [layers[p] for p in outputs.torch if p in layers and is_within(p, path)]
    theirs = [q for q in outputs.paddle if q in layers.values() and is_within(q, other)]
    return ours[-1:] != theirs[-1:]


def _pair_unambiguous(pairs: dict[str, str], fitting: Mapping[str, Sequence[str]]) -> None:
    """Pair what fits exactly one module, and is the only one that fits it."""
    claims = Counter(other for others in fitting.values() for other in others)
    for path, others in fitting.items():
        if len(others) == 1 and claims[others[0]] == 1:
            for former in [p for p, q in pairs.items() if q == others[0]]:
                del pairs[former]
            pairs[path] = others[0]


def find_built_in(
    pairs: Mapping[str, str], torch: Evidence, paddle: Evidence, expected: Trace
) -> dict[str, str]:
    """Return PyTorch's layers to which Paddle's add an activation, each with the module that applies it.

    "" where a module's own code may do it; a layer whose output goes into another layer as it is has
    no activation. expected: PyTorch's run.
    """
    silent, found = list_bare_leaves(torch.info), dict[str, str]()
    composites = {parent(path) for path in torch.info.modules}
    for call in expected.calls:
        known = paddle.info.modules.get(pairs.get(call.path, ""))
        if known is not None and known.kind and known.values.get("act") and not call.index:
            takers = [one for one in find_takers(expected, call) if one.path not in composites]
            applied = [one.path for one in takers if one.path in silent and _is_changed(one)]
            if applied or not takers:
                found[call.path] = applied[0] if applied else ""
    return found


def join_activation(call: Call, applied: str, run: Trace) -> Call:
    """Return the call with the outputs of the module `applied`, if that module takes the call's output."""
    after = next((one for one in find_takers(run, call) if one.path == applied), call)
    return replace(call, outputs=after.outputs, finished=after.finished)


def is_same_activation(class_name: str, name: str) -> bool:
    """Tell whether PyTorch's class and Paddle's name mean the same: Hardswish and "hard_swish"."""
    return class_name.lower() == _NAMES.get(name, name.replace("_", ""))


def find_takers(run: Trace, call: Call) -> Iterator[Call]:
    """Yield the later calls that take what a call gave, if that is one tensor."""
    given = [leaf.array for leaf in call.outputs.values()]
    for later in run.calls:
        taken = [leaf.array for leaf in later.inputs.values()]
        if later.began > call.finished and len(given) == len(taken) == 1:
            if np.array_equal(given[0], taken[0]):
                yield later


def _is_changed(call: Call) -> bool:
    """Tell whether a call gives other numbers than it takes: dropout, in eval mode, gives the same."""
    (taken,), given = call.inputs.values(), [leaf.array for leaf in call.outputs.values()]
    same_shape = len(given) == 1 and given[0].shape == taken.array.shape
    return same_shape and not np.array_equal(given[0], taken.array)


def find_certain_places(
    pairs: Mapping[str, str], torch: Evidence, paddle: Evidence
) -> dict[str, str]:
    """Return the pairs (Paddle's name -> PyTorch's) at which random draws can be told apart by place.

    A dropout layer counts only where all such layers of its parent that are called have the same
    names on both sides. Otherwise which of several is which is a guess, and their order within the
    parent decides.
    """
    silent = list_bare_leaves(torch.info)
    ours, theirs = (
        list_bare_leaves(side.info) & set(side.order or side.info.modules)
        for side in (torch, paddle)
    )
    certain = {}
    names, other_names = _group_by_parent(ours), _group_by_parent(theirs)
    for path, other in pairs.items():
        above, beside = parent(path), parent(other)
        same_names = names[above] == other_names[beside]
        if path not in silent or (same_names and pairs.get(above) == beside):
            certain[other] = path
    return certain


def _group_by_parent(paths: Iterable[str]) -> defaultdict[str, set[str]]:
    """Return the last parts of the paths by what stands above them."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for path in paths:
        found[parent(path)].add(last_part(path))
    return found


def keep_common_places(
    places: Mapping[str, str], ours: DrawnShapes, theirs: DrawnShapes
) -> dict[str, str]:
    """Return the places at which both sides draw the same.

    ours, theirs: what each side drew in a run with these places. A dropout may stand inside a
    module here and right after it there. If the module around both holds the same draws on both
    sides, in one order, they are told apart by that order. Otherwise a draw is missing: all stay.
    """
    kept = dict(places)
    for place in sorted(set(places.values()), key=lambda path: -path.count(".")):
        if place not in kept.values() or _agree(place, kept, ours, theirs):
            continue
        for above in ancestors(place):
            fewer = {k: v for k, v in kept.items() if v == above or not is_within(v, above)}
            if above in kept.values() and _agree(above, fewer, ours, theirs):
                kept = fewer
                break
    return kept


def _agree(place: str, places: Mapping[str, str], ours: DrawnShapes, theirs: DrawnShapes) -> bool:
    """Tell whether both sides draw the same there; one may have the batch first, the other second."""
    first, second = (
        [sorted(shape) for shape in shapes_drawn(side, place, places.values())]
        for side in (ours, theirs)
    )
    return first == second


def shapes_drawn(drawn: DrawnShapes, place: str, places: Iterable[str]) -> list[tuple[int, ...]]:
    """Return the shapes drawn in a module, outside the places that lie deeper in it."""
    inside = [(path, shape) for ((path, _), _), shape in drawn.items() if is_within(path, place)]
    known = {place, *places} if inside else set()
    return [shape for path, shape in inside if _find_innermost(path, known) == place]


def _find_innermost(path: str, places: Container[str]) -> str | None:
    """Return the place that holds a path and lies deepest."""
    return next((one for one in (path, *ancestors(path)) if one in places), None)
