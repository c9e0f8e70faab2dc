"""Pairs modules by what came out of them, where names and tensors do not tell which is which."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from reprod_align.base.difference import gap
from reprod_align.base.naming import ancestors, is_within, last_part, parent
from reprod_align.match.evidence import Evidence
from reprod_align.match.modules import leaves_without_tensors, same_kind
from reprod_align.model.trace import Array, Trace


@dataclass(frozen=True)
class _Outputs:
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
    outputs = _Outputs(_first_outputs(expected), _first_outputs(actual))
    _correct_composites(pairs, outputs, torch.owners)
    ours, theirs = leaves_without_tensors(torch.info), leaves_without_tensors(paddle.info)
    for above, beside in list(pairs.items()):
        first = [path for path in ours if parent(path) == above and path in outputs.torch]
        second = [path for path in theirs if parent(path) == beside and path in outputs.paddle]
        if set(map(last_part, first)) != set(map(last_part, second)):
            fitting = {
                path: [q for q in second
                       if same_kind(torch.info, path, paddle.info, q) and outputs.agree(path, q)]
                for path in first
            }  # fmt: skip
            _pair_unambiguous(pairs, fitting)


def _first_outputs(trace: Trace) -> dict[str, Array]:
    first_calls = (call for call in trace.calls if call.index == 0 and call.outputs)
    return {call.path: next(iter(call.outputs.values())).array for call in first_calls}


def _correct_composites(pairs: dict[str, str], outputs: _Outputs, holders: Collection[str]) -> None:
    """Correct pairs of modules whose outputs differ because one side nests its modules deeper.

    holders: PyTorch's modules with tensors. The right counterpart of such a module lies around it or
    right in it, is unpaired so far, and returns the same. If there is none, and the two
    hold and end with different layers, they do different things, and neither has a counterpart.
    """
    for path, other in list(pairs.items()):
        if not path or not other or outputs.agree(path, other):
            continue
        corrected = _find_nested(path, other, pairs, outputs)
        if corrected is None and not _do_different_things(path, other, pairs, outputs, holders):
            continue
        if corrected is None or corrected[0] != path:
            del pairs[path]
        if corrected is not None:
            pairs[corrected[0]] = corrected[1]


def _find_nested(
    path: str, other: str, pairs: Mapping[str, str], outputs: _Outputs
) -> tuple[str, str] | None:
    """Return the pair with equal outputs that has another module on one of the sides, near the old."""
    ours = _unpaired_near(path, pairs.keys(), outputs.torch)
    theirs = _unpaired_near(other, pairs.values(), outputs.paddle)
    candidates = [*((near, other) for near in ours), *((path, near) for near in theirs)]
    return next((pair for pair in candidates if outputs.agree(*pair)), None)


def _unpaired_near(path: str, paired: Collection[str], known: Mapping[str, Array]) -> list[str]:
    """Return the unpaired modules around a module, up to the first paired one, and right in it.

    known: the modules with an output; a list of modules, which is never called, has none.
    """
    around = takewhile(lambda above: above not in paired, ancestors(path))
    within = [inner for inner in known if parent(inner) == path and inner not in paired]
    return [above for above in around if above in known] + within


def _do_different_things(
    path: str, other: str, pairs: Mapping[str, str], outputs: _Outputs, holders: Collection[str]
) -> bool:
    """Tell whether two composites hold different layers with tensors, and call different ones last."""
    layers = {ours: theirs for ours, theirs in pairs.items() if ours in holders}
    if all(is_within(p, path) == is_within(q, other) for p, q in layers.items()):
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
