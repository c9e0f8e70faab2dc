"""How weights lie in the port, and which pairing is meant, where names and shapes do not tell.

A class derived from Linear, or one that multiplies with a bare parameter, may keep (out, in) or
(in, out), and a square weight fits both ways. On the reference's inputs only one of them gives the
reference's outputs, whatever is wrong elsewhere in the port. Of several pairings the one is kept that
makes the outputs agree.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from reprod_align.alignment.comparing import compare_outputs
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.lines.graph import KnownValues
from reprod_align.alignment.locating.counterparts import CallPair, Counterparts, PinnedRun
from reprod_align.alignment.locating.fault import ROUNDED, compare, find_misfit, rounding_of
from reprod_align.alignment.locating.pinning import run_again
from reprod_align.alignment.pairing import Pairing, make_pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.difference import RELATIVE_TOLERANCE
from reprod_align.base.text import ancestors, shorten
from reprod_align.match import Evidence, Match, Relayout, TensorPair, find_alternatives, take_spare
from reprod_align.model.side import ModelFailure
from reprod_align.model.source import Wanted

import numpy as np

CLEARLY = 1e-3
"""the right way leaves at most this share of the distance between the outputs"""


def settle_layouts(runner: Runner) -> tuple[Runner, list[str]]:
    """Lay weights that fit in two ways as their modules need them; return which were turned.

    A weight that its own module cannot tell lies as those of the other modules of its class do.
    """
    pairing = runner.pairing
    turned = {pair: pair.lay_other_way() for pair in pairing.loaded if pair.either_way}
    if not turned:
        return runner, []
    try:
        as_it_is, otherwise = (_measure(_lay(runner, change)) for change in ({}, turned))
    except ModelFailure:
        runner.load_port()
        return runner, []
    verdicts = {pair: _judge(as_it_is, otherwise, _find_module(pair, pairing)) for pair in turned}
    known = _find_known_classes(verdicts, pairing)
    chosen: dict[TensorPair, TensorPair] = {}
    for pair, verdict in verdicts.items():
        turns = known.get(_find_classes(pair, pairing)) if verdict is None else verdict
        if turns is not None:
            chosen[pair] = replace(turned[pair] if turns else pair, either_way=False)
    names = [pair.torch[0] for pair, made in chosen.items() if made.transposed != pair.transposed]
    return _lay(runner, chosen), names


def settle_groups(runner: Runner) -> tuple[Runner, list[str]]:
    """Deal the rows of fused weights out to heads as the modules around them need it.

    Returns which were dealt out otherwise. All weights of a pattern lie alike: modules that are at
    fault tell nothing, the others decide.
    """
    settled: list[str] = []
    groups = _group_changes(runner.pairing.match.layouts)
    for changes in groups:
        modules = {_find_around(pair, runner.pairing) for pair in changes[0]}
        try:
            chosen = _choose(runner, changes, modules)
        except ModelFailure:
            chosen = None
        if chosen is not None:
            runner = _lay(runner, chosen)
            settled += [pair.torch[0] for pair in chosen]
    if groups:  # what was tried last lies in the port
        runner.load_port()
    return runner, settled


def _group_changes(layouts: Sequence[Relayout]) -> list[list[Relayout]]:
    """Return the changes of fused pairs, those of the same pairs together."""
    groups: dict[tuple[TensorPair, ...], list[Relayout]] = defaultdict(list)
    for change in layouts:
        if all(pair.is_fused for pair in change):
            groups[tuple(change)].append(change)
    return list(groups.values())


def _find_around(pair: TensorPair, pairing: Pairing) -> str:
    """Return the first module of Paddle's around a weight that has a counterpart; the model has one."""
    paired = set(pairing.modules.values())
    return next(path for path in ancestors(pair.paddle[0]) if path in paired)


def _choose(
    runner: Runner, changes: Sequence[Relayout], modules: Collection[str]
) -> Relayout | None:
    """Return the first change that makes modules agree; None if it makes others differ.

    Where all of them are at fault: that with which one makes most of the reference's values.
    """
    as_it_is = _measure(_lay(runner, {}), with_handed=True)
    apart = [one for one in modules if as_it_is.get(one, 0.0) > RELATIVE_TOLERANCE]
    if not apart:
        return None
    for change in changes:
        otherwise = _measure(_lay(runner, change), with_handed=True)
        told = {_judge(as_it_is, otherwise, module) for module in modules}
        if False in told:
            return None
        if True in told:
            return change
    counts = [_count_known(_lay(runner, change), min(apart)) for change in ({}, *changes)]
    first, *others = counts
    most = max(others)
    return changes[others.index(most)] if most > first and others.count(most) == 1 else None


def _count_known(runner: Runner, module: str) -> int:
    """Return how many of the values that a module of the port makes are the reference's."""
    run = _start_run(runner)
    counterparts = run.counterparts
    named = frozenset(counterparts.names.values()), frozenset(counterparts.names)
    calls = [calls for calls in run.calls if calls.theirs.path == module]
    wanted = [
        Wanted(frozenset(call.key for call in keys), names, stock=stock)
        for keys, names, stock in (
            ([one.ours for one in calls], named[0], runner.pairing.torch.stock),
            ([one.theirs for one in calls], named[1], runner.pairing.paddle.stock),
        )
    ]
    ours = runner.run_reference(False, keep="none", wanted=wanted[0], backward=False)
    theirs = run_again(runner, False, run, wanted=wanted[1]).port
    known = KnownValues((made for one in ours.operations for made in one.outputs), ROUNDED)
    return sum(known.knows(made) for one in theirs.operations for made in one.outputs)


def _lay(runner: Runner, change: Relayout) -> Runner:
    """Return the runner with other pairs of tensors in their places, the port's weights loaded."""
    pairing = runner.pairing
    match = replace(pairing.match, pairs=[change.get(p, p) for p in pairing.match.pairs])
    if change:
        match = replace(match, layouts=[
            one for one in match.layouts if not change.keys() & one.keys()
        ])  # fmt: skip
    loaded = [change.get(pair, pair) for pair in pairing.loaded]
    made = replace(runner, pairing=replace(pairing, match=match, loaded=loaded))
    made.load_port()
    return made


def _measure(runner: Runner, with_handed: bool = False) -> dict[str, float]:
    """Return how far each module of the port is from its counterpart on the reference's numbers.

    with_handed: in what it hands to its children too, which are given the reference's in its place.
    """
    run = run_again(runner, False, _start_run(runner))
    found: dict[str, float] = defaultdict(float)
    for calls in run.calls:
        path = calls.theirs.path
        found[path] = max(found[path], *_measure_distances(run, calls))
        around = run.counterparts_around(calls) if with_handed else None
        if around is not None:
            path = around.theirs.path
            found[path] = max(found[path], *_measure_handed(run, calls))
    return found


def _start_run(runner: Runner) -> PinnedRun:
    """Return the port's own run in eval mode, beside the reference's."""
    natural = runner.run_port(False, "outputs", backward=False)
    return PinnedRun(
        runner.expected, natural, Counterparts(runner.pairing, runner.expected, natural)
    )


def _measure_distances(run: PinnedRun, calls: CallPair) -> Iterator[float]:
    """Yield how far the outputs of two calls are apart, relative; inf where an output has no counterpart."""
    pairs = run.pair_leaves(calls, "outputs")
    yield np.inf if not pairs or find_misfit(run, calls) else 0.0
    for pair in pairs:
        expected, actual = (leaf.array for leaf in calls.leaves(pair, "outputs"))
        yield compare(pair, expected, actual, rounding_of(calls.ours)).relative


def _measure_handed(run: PinnedRun, calls: CallPair) -> Iterator[float]:
    """Yield how far what two calls are given is apart, relative, where a gradient flows."""
    yield 0.0
    for pair in run.pair_leaves(calls, "inputs"):
        ours, theirs = calls.leaves(pair, "inputs")
        if ours.differentiable:
            yield compare(pair, ours.array, theirs.array, rounding_of(calls.ours)).relative


def _judge(
    as_it_is: Mapping[str, float], otherwise: Mapping[str, float], module: str | None
) -> bool | None:
    """Tell whether a module needs its weight turned; None if it does not say."""
    if module is None or module not in as_it_is or module not in otherwise:
        return None
    near, far = as_it_is[module], otherwise[module]
    if near <= _limit_rest(far):
        return None if far <= _limit_rest(near) else False
    return True if far <= _limit_rest(near) else None


def _limit_rest(other: float) -> float:
    return max(RELATIVE_TOLERANCE, CLEARLY * other) if np.isfinite(other) else RELATIVE_TOLERANCE


def _find_module(pair: TensorPair, pairing: Pairing) -> str | None:
    """Return Paddle's module that holds the weight, if PyTorch's holder is its counterpart."""
    ours = pairing.torch.tensors[pair.torch[0]].owner
    theirs = pairing.paddle.tensors[pair.paddle[0]].owner
    return theirs if pairing.modules.get(ours) == theirs else None


def _find_classes(pair: TensorPair, pairing: Pairing) -> tuple[str, str, str]:
    """Return the classes that hold the weight, and what it is called there."""
    ours = pairing.torch.tensors[pair.torch[0]].owner
    theirs = pairing.paddle.tensors[pair.paddle[0]]
    return (
        pairing.torch.modules[ours].class_name,
        pairing.paddle.modules[theirs.owner].class_name,
        theirs.role,
    )


def _find_known_classes(
    verdicts: Mapping[TensorPair, bool | None], pairing: Pairing
) -> dict[tuple[str, str, str], bool]:
    """Return the classes whose modules agree on how the weight lies, leaving out modules that cannot tell."""
    said: dict[tuple[str, str, str], set[bool]] = defaultdict(set)
    for pair, turns in verdicts.items():
        if turns is not None:
            said[_find_classes(pair, pairing)].add(turns)
    return {classes: min(words) for classes, words in said.items() if len(words) == 1}


_TRIES = 48  # other pairings that are tried before giving up
_NAMED = 4  # weights in one remark


def try_alternatives(
    runner: Runner, torch: Evidence, paddle: Evidence, findings: Findings
) -> Runner:
    """Where tensors could be paired or laid out in other ways, keep the way that makes outputs agree.

    A port that computes in float32 inside, or has a small fault elsewhere, still differs then, but
    far less than with a wrong pairing. Parameters that only each other fit are paired unless that
    brings the outputs further apart: a fault elsewhere says nothing against it.
    """
    if not runner.pairing.match.is_doubtful:
        return runner
    distance = _measure_outputs(runner)
    if distance > RELATIVE_TOLERANCE:
        runner, turned = settle_layouts(runner)
        runner, dealt = settle_groups(runner)
        if turned := [*turned, *dealt]:
            named = shorten(turned, _NAMED)
            findings.remark(f"laid out by comparing outputs, since the shapes do not tell: {named}")
            distance = _measure_outputs(runner)
    if runner.pairing.match.spare:
        match, words = take_spare(runner.pairing.match)
        tried, left = _try_match(runner, match, torch, paddle)
        if left <= max(distance, RELATIVE_TOLERANCE):
            findings.remark(_PAIRED.format(words))
            runner, distance = tried, left
        else:
            runner.load_port()
    return _try_pairings(runner, torch, paddle, findings, distance)


_PAIRED = "paired by comparing outputs, since the names are ambiguous: {}"


def _try_pairings(
    runner: Runner, torch: Evidence, paddle: Evidence, findings: Findings, distance: float
) -> Runner:
    """Return the runner with the first other pairing that leaves far less than `distance`."""
    if distance <= RELATIVE_TOLERANCE:
        return runner
    enough = (
        max(RELATIVE_TOLERANCE, CLEARLY * distance) if np.isfinite(distance) else RELATIVE_TOLERANCE
    )
    match = replace(runner.pairing.match, spare=[])
    for words, other in islice(find_alternatives(match), _TRIES):
        tried, left = _try_match(runner, other, torch, paddle)
        if left <= enough:
            findings.remark(_PAIRED.format(words))
            return tried
    runner.load_port()
    return runner


def _try_match(
    runner: Runner, match: Match, torch: Evidence, paddle: Evidence
) -> tuple[Runner, float]:
    """Return the runner with this match, and how far its outputs are apart."""
    tried = replace(runner, pairing=make_pairing(match, torch, paddle))
    tried.load_port()
    return tried, _measure_outputs(tried)


def _measure_outputs(runner: Runner) -> float:
    """Return how far the port's outputs in eval mode are from the reference's, relative."""
    try:
        port = runner.run_port(False, "ends", backward=False)
    except ModelFailure:
        return np.inf
    gaps = compare_outputs(runner.pairing, runner.expected, port)
    return max((found.exceed * RELATIVE_TOLERANCE for _, found in gaps), default=np.inf)
