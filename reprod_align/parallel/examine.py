"""What the ranks did, held against what each should have: findings that name rank and axis, and the reason.

A reason is a known mistake, tried on the numbers. Knows numpy only.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, Final

from reprod_align.alignment import Findings, Pairing, Runner, pair_models
from reprod_align.base.blocks import Array, measure_peak
from reprod_align.base.difference import Gap, gap
from reprod_align.errors import ReprodError
from reprod_align.model import Call, ModelFailure
from reprod_align.pair import PairSpec
from reprod_align.parallel import Axis, Mesh, Placement, differ
from reprod_align.parallel.side import Disagreement, ParallelSide
from reprod_align.report import Finding, FindingKind, Report, Stage

import numpy as np

_CLOSE: Final = 1e-9  # relative: a mistake that explains the numbers explains them as float64 does
_MOST_BLOCKS: Final = 4


@dataclass(frozen=True)
class Reason:
    """What a mistake is, and where on the mesh."""

    text: str
    axis: str
    """"dp", "tp", or "" where both or none are meant"""
    is_shard: bool = False
    """whether the numbers are right and in the wrong place"""


@dataclass(frozen=True)
class RankTensor:
    """What every rank holds of a tensor, and what it should."""

    parts: Sequence[Array]
    expected: Sequence[Array]
    placement: Placement
    mesh: Mesh
    close: float = _CLOSE
    """relative: how close numbers are that are the same"""

    @property
    def wrong(self) -> list[int]:
        """The ranks that hold something else than they should."""
        return [
            r for r in range(self.mesh.size) if not self.agrees(self.parts[r], self.expected[r])
        ]

    def agrees(self, first: Array, second: Array) -> bool:
        """Tell whether two arrays are the same as far as float64 goes."""
        scale = max(map(measure_peak, self.expected), default=0.0)
        return gap(second, first, self.close, 1e-4 * self.close * scale).ok

    def all_agree(self, make: Callable[[int], Array]) -> bool:
        """Tell whether each wrong rank holds `make(rank)`."""
        return all(self.agrees(self.parts[rank], make(rank)) for rank in self.wrong)

    def axes(self) -> Iterator[tuple[Axis, int, bool]]:
        """Yield each axis of the mesh with ranks on it, how many, and whether it cuts the tensor."""
        if self.mesh.tp > 1:
            yield "tp", self.mesh.tp, self.placement.tp is not None
        if self.mesh.dp > 1:
            yield "dp", self.mesh.dp, isinstance(self.placement.dp, int)


def explain(held: RankTensor) -> Reason | None:
    """Return the mistake that explains what the ranks hold; None if none is known, or all is right."""
    wrong = held.wrong
    if not wrong or any(
        part.shape != e.shape for part, e in zip(held.parts, held.expected, strict=True)
    ):
        return None
    for find in (
        _find_none,
        _find_unreduced,
        _find_wrong_group,
        _find_factor,
        _find_exchange,
        _find_order,
    ):
        found = find(held)
        if found is not None:
            return found
    return None


def _find_none(held: RankTensor) -> Reason | None:
    empty = [rank for rank in held.wrong if not held.parts[rank].any()]
    if not empty:
        return None
    if len(empty) == held.mesh.size:
        return Reason("it is zero on every rank", "")
    return Reason(f"it is zero on {_name(empty)} alone", _find_axis(held.mesh, empty[0]))


def _find_unreduced(held: RankTensor) -> Reason | None:
    """Find parts that would be right if they were summed, or averaged, over an axis."""
    for axis, count, is_cut in held.axes():
        if is_cut or all(
            held.agrees(held.parts[r], held.parts[held.mesh.peers(r, axis)[0]]) for r in held.wrong
        ):
            continue
        sums = {rank: sum(held.parts[other] for other in held.mesh.peers(rank, axis))
                for rank in range(held.mesh.size)}  # fmt: skip
        if _match(held, sums, 1.0):
            return Reason(
                f"it is not summed over {axis}: the {count} ranks' parts add up to it", axis
            )
        if _match(held, sums, 1.0 / count):
            return Reason(
                f"it is not averaged over {axis}: the {count} ranks' parts have it as their mean",
                axis,
            )
    return None


def _match(held: RankTensor, sums: Mapping[int, Any], times: float) -> bool:
    return all(held.agrees(sums[rank] * times, held.expected[rank]) for rank in held.wrong)


def _find_wrong_group(held: RankTensor) -> Reason | None:
    """Find parts of a cut tensor that were reduced with ranks that hold another part."""
    mesh = held.mesh
    if mesh.tp == 1 or held.placement.tp is None:
        return None
    groups = mesh.groups("tp")
    means: dict[int, Any] = {
        rank: sum(held.expected[other] for other in group) / mesh.tp
        for group in groups
        for rank in group
    }
    same = all(
        held.agrees(held.parts[group[0]], held.parts[rank]) for group in groups for rank in group
    )
    if not same:
        return None
    if mesh.dp > 1 and not held.agrees(held.parts[0], held.parts[mesh.tp]):
        both: Any = sum(held.parts) / mesh.size
        if held.agrees(both, means[0]):
            return Reason(
                "it is averaged over tp, whose ranks hold other parts, in place of dp", "tp"
            )
    for times, word in ((1.0, "averaged"), (float(mesh.tp), "summed")):
        if held.all_agree(lambda rank, times=times: means[rank] * times):  # type: ignore[misc]
            return Reason(f"it is {word} over tp, whose ranks hold other parts of it", "tp")
    return None


def _find_factor(held: RankTensor) -> Reason | None:
    """Find a factor that all ranks are off by, or one rank alone."""
    rank = held.wrong[0]
    peak = measure_peak(held.expected[rank])
    if not peak:
        return None
    at = int(np.abs(held.expected[rank]).argmax())
    factor = float(held.parts[rank].flat[at] / held.expected[rank].flat[at])
    if not held.all_agree(lambda rank: held.expected[rank] * factor):
        return None
    where = "" if len(held.wrong) == held.mesh.size else f" on {_name(held.wrong)} alone"
    for axis, count, is_cut in held.axes():
        if np.isclose(factor, count, rtol=held.close):
            how = "in place of averaged" if axis == "dp" else "although every rank has all of it"
            how = "of parts" if is_cut and axis == "tp" else how
            return Reason(
                f"it is {count} times what it should be{where}: summed over {axis} {how}", axis
            )
        if np.isclose(factor, 1 / count, rtol=held.close):
            how = (
                "averaged twice"
                if axis == "dp"
                else "averaged, or divided, in place of taken whole"
            )
            return Reason(f"it is 1/{count} of what it should be{where}: over {axis} {how}", axis)
    times = f"{factor:.6g} times"
    return Reason(
        f"it is {times} what it should be{where}", _find_axis(held.mesh, rank) if where else ""
    )


def _find_exchange(held: RankTensor) -> Reason | None:
    """Find a rank that holds what another one should."""
    rank = held.wrong[0]
    for other in range(held.mesh.size):
        if other != rank and held.agrees(held.parts[rank], held.expected[other]):
            return Reason(
                f"rank {rank} holds what rank {other} should",
                _find_axis(held.mesh, rank, other),
                True,
            )
    return None


def _find_order(held: RankTensor) -> Reason | None:
    """Find blocks of a part in another order: query, key and value, or heads."""
    axis, rank = held.placement.tp, held.wrong[0]
    if axis is None or axis >= held.parts[rank].ndim:  # sums of a sketch have no axes
        return None
    part, expected = held.parts[rank], held.expected[rank]
    for blocks in range(2, _MOST_BLOCKS + 1):
        if expected.shape[axis] % blocks:
            continue
        pieces = np.split(expected, blocks, axis)
        for order in permutations(range(blocks)):
            if held.agrees(part, np.concatenate([pieces[n] for n in order], axis)):
                where = f"blocks {order} of {blocks} along axis {axis}"
                text = f"rank {rank} holds its part in another order: {where}"
                return Reason(text, "tp", True)
    if np.array_equal(np.sort(part, None), np.sort(expected, None)):
        return Reason(f"rank {rank} holds its part with its numbers in another order", "tp", True)
    rows, known = (
        _collect_rows(part, axis),
        _collect_rows(np.concatenate(held.expected[: held.mesh.tp], axis), axis),
    )
    if len(rows) > 1 and rows <= known:
        text = (
            f"rank {rank} holds other slices along axis {axis} than its own: cut in another order"
        )
        return Reason(text, "tp", True)
    return None


def _collect_rows(array: Array, axis: int) -> set[bytes]:
    """Return the slices of an array along an axis that are not all zero, as bytes."""
    return {row.tobytes() for row in np.moveaxis(array, axis, 0) if row.any()}


def _find_axis(mesh: Mesh, rank: int, other: int | None = None) -> str:
    """Return the axis of the mesh along which a rank differs from the other, or from the first."""
    if other is None:
        return "tp" if mesh.tp > 1 and rank % mesh.tp else "dp" if mesh.dp > 1 else "tp"
    return "dp" if rank % mesh.tp == other % mesh.tp else "tp"


def _name(ranks: Sequence[int]) -> str:
    numbers = ", ".join(map(str, ranks))
    return f"rank {numbers}" if len(ranks) == 1 else f"ranks {numbers}"


_STAGE: Mapping[str, Stage] = {
    "gradient": "backward",
    "tensor": "optimizer",
    "loss": "loss",
    "rate": "schedule",
}


_BEFORE = ("weights", "forward", "loss")
"""the stages whose faults gradients and steps inherit"""
_ROUNDING = 1e-6  # relative: less is left to the judge, which measures rounding


def examine(pair: PairSpec, port: ParallelSide, report: Report) -> None:
    """Add to a report what the ranks tell: of findings why, and what putting together hides.

    A pair that agrees, with ranks that agree, costs nothing.
    """
    if not report.findings and not port.apart:
        return
    apart = _sum_up(port.apart)
    findings = Findings()
    try:
        with ExitStack() as stack:
            stack.enter_context(pair.reference.working("float64"))
            stack.enter_context(port.working("float64", at_rest=True))
            runner = pair_models(pair.reference, port, pair.inputs, "float64", pair.name_map,
                                 pair.copy_weights, Findings())  # fmt: skip
            _explain_weights(runner, port, report)
            _explain_places(runner, port, report)
            if not any(finding.stage in _BEFORE for finding in report.findings):
                _explain_gradients(runner, port, report, findings)
            pairing: Pairing | None = runner.pairing
    except (ModelFailure, ReprodError):
        pairing = None  # what was found stands without it
    inherited = any(finding.stage in _BEFORE for finding in report.findings)
    for one in apart:
        if one.what.startswith("stream") or not inherited:
            _add_apart(one, pairing, report, findings)
    # a value apart after a step says why the losses of later steps differ
    if any(one.step is not None for one in port.apart):
        report.findings = [one for one in report.findings if one.kind != "training-loss"]
    report.findings = _join_causes([*report.findings, *findings.report.findings])


def _join_causes(findings: Sequence[Finding]) -> list[Finding]:
    """Join the findings on ranks that have the same cause; the joined one lists all their places."""
    joined: dict[object, Finding] = {}
    for number, one in enumerate(findings):
        has_cause = one.kind.startswith("rank-") and one.cause
        key: object = (one.stage, one.kind, one.cause) if has_cause else number
        if key in joined:
            names = (one.place, *one.places)
            joined[key] = replace(joined[key], places=(*joined[key].places, *names))
        else:
            joined[key] = one
    return [*joined.values()]


def _sum_up(apart: Sequence[Disagreement]) -> list[Disagreement]:
    """Return each disagreement once, where it was first seen."""
    found: dict[tuple[str, str, str], Disagreement] = {}
    for one in apart:
        found.setdefault((one.what, one.name, one.axis), one)
    return list(found.values())


def _explain_weights(runner: Runner, port: ParallelSide, report: Report) -> None:
    """Say of weights that are not PyTorch's what each rank holds instead."""
    if not any(finding.stage == "weights" for finding in report.findings):
        return
    expected = runner.pairing.convert(runner.weights)
    held = port.read_parts()
    for number, finding in enumerate(report.findings):
        name = finding.paddle_name
        if finding.stage == "weights" and name in expected and name in held:
            found = _hold(port, held[name], port.placement(name), expected[name])
            report.findings[number] = _with_ranks(finding, found)


def _explain_places(runner: Runner, port: ParallelSide, report: Report) -> None:
    """Say of modules at fault on which ranks they are, and what the ranks' parts tell."""
    for training in (False, True):
        if not port.placed[training]:
            continue
        reference = runner.expected if not training else runner.run_reference(True)
        calls = reference.by_key()
        for number, finding in enumerate(report.findings):
            if finding.stage not in ("forward", "backward") or (
                ("train mode" in finding.evidence) is not training
            ):
                continue
            if finding.kind == "outputs" and not finding.paddle_name:
                report.findings[number] = _find_apart(finding, port, training, runner.pairing)
                continue
            for held in _hold_places(port, training, finding, calls):
                if held.wrong:
                    report.findings[number] = _with_ranks(finding, held)
                    break


def _find_apart(finding: Finding, port: ParallelSide, training: bool, pairing: Pairing) -> Finding:
    """Return a finding on the first module whose output should be one and differs between ranks.

    Every module was given the reference's numbers: the one that is named makes the difference. The
    whole model's finding comes back where there is none.
    """
    for (path, _, which, _), placed in port.placed[training].items():
        for axis, cut in (("dp", placed.placement.dp), ("tp", placed.placement.tp)):
            wanted = which == "outputs" and cut is None
            ranks = differ(placed.parts, port.mesh, axis) if wanted else None  # type: ignore[arg-type]
            if ranks is not None:
                first, second = (placed.parts[rank] for rank in ranks)
                found = gap(first, second)
                text = (
                    f"its output differs between ranks {ranks[0]} and {ranks[1]} of {axis}, where "
                    f"it should be the same, on inputs that agree; {found.words}"
                )
                ours = next((o for o, theirs in pairing.modules.items() if theirs == path), path)
                return replace(finding, kind="rank-apart", torch_name=ours, paddle_name=path,
                               evidence=text)  # fmt: skip
    return finding


def _hold_places(
    port: ParallelSide, training: bool, finding: Finding, calls: Mapping[tuple[str, int], Call]
) -> Iterator[RankTensor]:
    """Yield what the ranks gave at a module at fault, beside what they should have."""
    wanted = "outputs" if finding.stage == "forward" else "inputs"
    for (path, index, which, at), placed in port.placed[training].items():
        call = calls.get((finding.torch_name, index))
        if path != finding.paddle_name or which != wanted or call is None:
            continue
        leaf = getattr(call, which).get(at)
        whole = None if leaf is None else leaf.array if wanted == "outputs" else leaf.gradient
        parts = placed.parts if wanted == "outputs" else placed.gradients
        if whole is None or any(part is None for part in parts):
            continue
        for turned in (whole, whole.swapaxes(0, 1) if whole.ndim > 1 else whole):
            with suppress(ValueError, IndexError):  # cut in another way than the reference's
                expected = [
                    placed.placement.scatter(turned, port.mesh, rank)
                    if wanted == "outputs"
                    else port.cut_gradient(turned, placed.placement, rank)
                    for rank in range(port.mesh.size)
                ]
                if expected[0].shape == parts[0].shape:  # type: ignore[union-attr]
                    yield RankTensor(parts, expected, placed.placement, port.mesh)  # type: ignore[arg-type]
                    break


def _explain_gradients(
    runner: Runner, port: ParallelSide, report: Report, findings: Findings
) -> None:
    """Find gradients whose parts tell by the numbers what became of their reduction."""
    has_loss = runner.reference.loss is not None
    reference = runner.run_reference(True, loss=has_loss)
    runner.run_port(True, "outputs", loss=has_loss)
    expected = runner.pairing.convert(_fill(runner.pairing, reference.gradients))
    for name, whole in expected.items():
        if not runner.pairing.paddle.tensors[name].is_trainable or name not in port.names:
            continue
        own = [part.get(name) for part in port.gradients]
        shapes = [port.placement(name).scatter(whole, port.mesh, r) for r in range(port.mesh.size)]
        filled = [np.zeros(e.shape) if g is None else g for g, e in zip(own, shapes, strict=True)]
        held = RankTensor(filled, shapes, port.placement(name), port.mesh)
        gaps = [gap(e, g) for e, g in zip(shapes, filled, strict=True)]
        worst = max(gaps, key=lambda one: one.relative)
        if worst.relative <= _ROUNDING:
            continue
        number = next((n for n, f in enumerate(report.findings)
                       if f.stage == "backward" and f.paddle_name == name), None)  # fmt: skip
        reason = explain(held)
        if number is not None:
            report.findings[number] = _with_ranks(report.findings[number], held)
        elif reason is not None:
            kind: FindingKind = "rank-shard" if reason.is_shard else "rank-reduction"
            ours = _find_torch_name(runner.pairing, name)
            text = f"its gradient differs on {_name_ranks(held)}; {worst.words}"
            findings.add("backward", ours, name, text, worst, kind=kind, cause=_say(reason))


def _fill(pairing: Pairing, gradients: Mapping[str, Array]) -> dict[str, Array]:
    """Return gradients of all trained tensors: one that never arrived is zero."""
    zeros = {n: np.zeros(t.shape) for n, t in pairing.torch.tensors.items() if t.is_parameter}
    return zeros | pairing.torch.spread(gradients)


def _hold(
    port: ParallelSide, parts: Sequence[Array], placement: Placement, whole: Array
) -> RankTensor:
    expected = [placement.scatter(whole, port.mesh, rank) for rank in range(port.mesh.size)]
    return RankTensor(parts, expected, placement, port.mesh)


def _name_ranks(held: RankTensor) -> str:
    ranks = held.wrong or list(range(held.mesh.size))
    if len(ranks) == held.mesh.size:
        return f"every rank of {held.mesh.name}"
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))} of {held.mesh.name}"


def _say(reason: Reason) -> str:
    return (
        reason.text
        if not reason.axis or reason.axis in reason.text
        else f"along {reason.axis}, {reason.text}"
    )


def _with_ranks(finding: Finding, held: RankTensor) -> Finding:
    """Return a finding with the ranks that it shows on, and the mistake that explains what they hold."""
    reason, where = explain(held), f"on {_name_ranks(held)}"
    evidence = finding.evidence if where in finding.evidence else f"{finding.evidence}, {where}"
    if reason is None:
        return replace(finding, evidence=evidence)
    kind: FindingKind = "rank-shard" if reason.is_shard else finding.kind
    if finding.kind in ("parameter-gradient", "gradient") and not reason.is_shard:
        kind = "rank-reduction"
    cause = ". ".join(filter(None, [_say(reason), finding.cause]))
    return replace(finding, kind=kind, cause=cause, evidence=evidence)


def _find_torch_name(pairing: Pairing, name: str) -> str:
    others = set(pairing.paddle.other_names(name))
    return next((pair.torch[0] for pair in pairing.match.pairs if others & set(pair.paddle)), name)


def _add_apart(
    one: Disagreement, pairing: Pairing | None, report: Report, findings: Findings
) -> None:
    """Add a finding for ranks that disagree, unless one says so of the same place already."""
    first, second = one.ranks
    where = (
        f"ranks {first} and {second} of {one.axis}" if one.axis else f"ranks {first} and {second}"
    )
    if one.what.startswith("stream"):
        alike = one.what == "stream shared"
        text = (
            f"{where} draw from the same random stream for the parts that each holds: the masks repeat"
            if alike
            else f"{where} draw from different random streams for a tensor that both hold: the masks differ"
        )
        path = one.name
        theirs = path if pairing is None else pairing.modules.get(path, path)
        findings.add("forward", path, theirs, text, Gap(np.inf, 0.0, 0.0), kind="rank-dropout")
        return
    found = gap(one.parts[first], one.parts[second]) if one.parts else Gap(np.inf, 0.0, 0.0)
    ours = one.name
    if pairing is not None and one.name in pairing.paddle.tensors:
        ours = _find_torch_name(pairing, one.name)
    known = [f for f in [*report.findings, *findings.report.findings]
             if f.stage == _STAGE[one.what]]  # fmt: skip
    if one.name and any(one.name in (f.paddle_name, *" ".join(f.places).split()) for f in known):
        return
    stage = _STAGE[one.what]
    is_buffer = (
        pairing is not None
        and one.name in pairing.paddle.tensors
        and not (pairing.paddle.tensors[one.name].is_parameter)
    )
    what = {
        "gradient": "its gradient",
        "tensor": "its running value" if is_buffer else "the weight",
        "loss": "the loss",
        "rate": "the learning rate",
    }[one.what]
    when = "" if one.step is None else f" after step {one.step}"
    text = f"{what} differs between {where}{when}, where it should be the same; {found.words}"
    kind: FindingKind = "running-statistics" if is_buffer else "rank-apart"
    cause = "" if one.what != "tensor" or is_buffer else f"it drifts apart along {one.axis}"
    if is_buffer:
        stage = "forward"
    findings.add(stage, ours, one.name, text, found, kind=kind, cause=cause)
