"""Pairs modules: those whose tensors are paired, those around them, and those without tensors."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from reprod_align.base.naming import ancestors, is_number, last_part, parent, similarity, tokens
from reprod_align.match.evidence import Evidence
from reprod_align.match.order import align_sequences, is_taken
from reprod_align.model.side import ModelInfo
from reprod_align.model.tensor_pair import Match

import numpy as np


def pair_modules(found: Match, torch: Evidence, paddle: Evidence) -> dict[str, str]:
    """Return every module that has a counterpart: PyTorch's name -> Paddle's, each named once."""
    owners, above = _owners(found, torch, paddle), _children(torch.info)
    leaves = {path: target for path, target in owners if path not in above}
    pairs = {"": "", **leaves, **found.modules}
    _by_content(pairs, torch, paddle)
    taken = set(pairs.values())
    for path, target in owners:  # what holds other modules too
        if path not in pairs and target not in taken:
            pairs[path] = target
            taken.add(target)
    _by_same_name(pairs, torch.info, paddle.info)
    _by_place(pairs, torch, paddle, found.paired_names())
    return pairs


def same_kind(torch: ModelInfo, path: str, paddle: ModelInfo, other: str) -> bool:
    """Tell whether two modules are the same layer, or of classes with the same name."""
    ours, theirs = torch.modules[path], paddle.modules[other]
    return (ours.kind or ours.class_name) == (theirs.kind or theirs.class_name)


def leaves_without_tensors(info: ModelInfo) -> set[str]:
    """Return the modules that hold neither children nor tensors: dropouts, activations, pools."""
    parents = {parent(path) for path in info.modules if path}
    owners = {tensor.owner for tensor in info.tensors.values()}
    return {path for path in info.modules if path and path not in parents and path not in owners}


def _owners(found: Match, torch: Evidence, paddle: Evidence) -> list[tuple[str, str]]:
    """Return the pairs of owners that are modules, and alike in whether they hold others."""
    above, beside = _children(torch.info), _children(paddle.info)
    return [
        (ours, theirs)
        for ours, theirs in found.owners.items()
        if ours in torch.info.modules
        and theirs in paddle.info.modules
        and (ours in above) == (theirs in beside)
    ]


def _by_content(pairs: dict[str, str], torch: Evidence, paddle: Evidence) -> None:
    """Pair composites that hold the same paired modules, outer ones with outer ones.

    What is called goes with what is called, and a list of modules with a list.
    """
    ours = _contents(torch.info, pairs, {path: path for path in pairs})
    names = {target: path for path, target in pairs.items()}
    theirs = _contents(paddle.info, names, names)
    called = _called(torch), _called(paddle)
    for content, paths in ours.items():
        others = theirs.get(content, [])
        for kinds in (True, True), (False, False), (True, False), (False, True):
            taken = set(pairs.values())
            free = [p for p in paths if p not in pairs and (p in called[0]) == kinds[0]]
            left = [p for p in others if p not in taken and (p in called[1]) == kinds[1]]
            pairs.update(_chained(free, left))


def _called(side: Evidence) -> set[str]:
    """Return the modules that were called; all, if it is not known."""
    return set(side.order or side.info.modules)


def _contents(
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


def _chained(ours: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Pair nested composites of equal content: by their own name if they share it, else outer first."""
    if len(ours) == len(theirs):
        return dict(zip(ours, theirs, strict=True))
    if not ours or not theirs:
        return {}
    few, many = (ours, theirs) if len(ours) < len(theirs) else (theirs, ours)
    chosen: dict[str, str] = {}
    rest = list(many)
    for path in few:
        best = max(rest, key=lambda other: _last_words(path) == _last_words(other))
        chosen[path] = best
        rest = rest[rest.index(best) + 1 :]
        if not rest:
            break
    return chosen if few is ours else {theirs: ours for ours, theirs in chosen.items()}


def _last_words(path: str) -> tuple[str, ...]:
    return tokens(last_part(path))


def _by_same_name(pairs: dict[str, str], torch: ModelInfo, paddle: ModelInfo) -> None:
    """Pair modules of one name under parents that are paired, unless their kinds forbid it."""
    taken = set(pairs.values())
    ours, theirs = _children(torch), _children(paddle)
    for path in torch.modules:
        above = parent(path)
        if path in pairs or above not in pairs:
            continue
        name = last_part(path)
        target = f"{pairs[above]}.{name}" if pairs[above] else name
        numbered = is_number(path) and _last(ours[above]) != _last(theirs[pairs[above]])
        if target in paddle.modules and target not in taken and not numbered:
            pairs[path] = target
            taken.add(target)


def _children(info: ModelInfo) -> dict[str, list[str]]:
    """Return the modules right in each module; what torch parametrizes counts as holding none."""
    children: dict[str, list[str]] = defaultdict(list)
    for path in info.modules:
        if path and "parametrizations" not in path.split("."):
            children[parent(path)].append(path)
    return children


def _last(paths: Iterable[str]) -> set[str]:
    return {last_part(path) for path in paths}


def _by_place(pairs: dict[str, str], torch: Evidence, paddle: Evidence, paired: set[str]) -> None:
    """Pair what holds no paired tensors by kind and order among the children of paired modules."""
    taken = set(pairs.values())
    below = [side.in_order(_children(side.info)) for side in (torch, paddle)]
    settled = [{p for p, owner in side.owners.items() if is_taken(owner, paired)}
               for side in (torch, paddle)]  # fmt: skip
    for above, partner in list(pairs.items()):
        ours = [p for p in below[0].get(above, ()) if p not in pairs and p not in settled[0]]
        theirs = [p for p in below[1].get(partner, ()) if p not in taken and p not in settled[1]]
        if not ours or not theirs:
            continue
        scores = np.array([[_alike(torch.info, paddle.info, p, q) for q in theirs] for p in ours])
        for row, column in align_sequences(scores):
            pairs[ours[row]] = theirs[column]
            taken.add(theirs[column])


def _alike(torch: ModelInfo, paddle: ModelInfo, path: str, other: str) -> float:
    return 1.0 + similarity(path, other) if same_kind(torch, path, paddle, other) else -1.0
