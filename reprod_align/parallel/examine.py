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
from reprod_align.parallel import Axis, Mesh, Placement
from reprod_align.parallel.side import Disagreement, ParallelSide
from reprod_align.report import Finding, FindingKind, Report, Stage

import numpy as np

_CLOSE: Final = 1e-9  # relative: a mistake that explains the numbers explains them as float64 does
_MOST_BLOCKS: Final = 4
_REDUCED_TWICE: Final[Mapping[Axis, tuple[str, str]]] = {
    "dp": ("in place of averaged", "averaged twice"),
    "tp": ("although every rank has all of it", "averaged, or divided, in place of taken whole"),
}
"""what makes a number too large along an axis, and too small"""


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
    shapes = [[array.shape for array in side] for side in (held.parts, held.expected)]
    if not held.wrong or shapes[0] != shapes[1]:
        return None
    kinds = (
        _find_none,
        _find_unreduced,
        _find_wrong_group,
        _find_factor,
        _find_exchange,
        _find_order,
    )
    return next((found for find in kinds if (found := find(held)) is not None), None)


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
        sums: list[Any] = [sum(held.parts[other] for other in held.mesh.peers(rank, axis))
                           for rank in range(held.mesh.size)]  # fmt: skip
        for times, reduced, do in ((1.0, "summed", "add up to it"),
                                   (1.0 / count, "averaged", "have it as their mean")):  # fmt: skip
            if all(held.agrees(sums[rank] * times, held.expected[rank]) for rank in held.wrong):
                text = f"it is not {reduced} over {axis}: the {count} ranks' parts {do}"
                return Reason(text, axis)
    return None


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
        summed, averaged = _REDUCED_TWICE[axis]
        if is_cut and axis == "tp":
            summed = "of parts"
        if np.isclose(factor, count, rtol=held.close):
            text = f"it is {count} times what it should be{where}: summed over {axis} {summed}"
            return Reason(text, axis)
        if np.isclose(factor, 1 / count, rtol=held.close):
            text = f"it is 1/{count} of what it should be{where}: over {axis} {averaged}"
            return Reason(text, axis)
    axis_at = _find_axis(held.mesh, rank) if where else ""
    return Reason(f"it is {factor:.6g} times what it should be{where}", axis_at)


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
    rows = _collect_rows(part, axis)
    known = _collect_rows(np.concatenate(held.expected[: held.mesh.tp], axis), axis)
    text = f"rank {rank} holds other slices along axis {axis} than its own: cut in another order"
    return Reason(text, "tp", True) if len(rows) > 1 and rows <= known else None


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


_APART: Mapping[str, tuple[Stage, str]] = {
    "gradient": ("backward", "its gradient"),
    "tensor": ("optimizer", "the weight"),
    "loss": ("loss", "the loss"),
    "rate": ("schedule", "the learning rate"),
}
"""what ranks disagree on -> the stage at which that shows, and the words for it"""
_BEFORE = ("weights", "forward", "loss")
"""the stages whose faults gradients and steps inherit"""
_ROUNDING = 1e-6  # relative: less is left to the judge, which measures rounding


def examine(pair: PairSpec, port: ParallelSide, report: Report) -> None:
    """Add to a report what the ranks tell: of findings why, and what putting together hides.

    A pair that agrees, with ranks that agree, costs nothing.
    """
    if not report.findings and not port.apart:
        return
    findings = Findings()
    apart: dict[object, Disagreement] = {}  # each once, where it was first seen
    for one in port.apart:
        apart.setdefault((one.what, one.name, one.axis), one)
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
    for one in apart.values():
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


def _explain_weights(runner: Runner, port: ParallelSide, report: Report) -> None:
    """Say of weights that are not PyTorch's what each rank holds instead."""
    if not any(finding.stage == "weights" for finding in report.findings):
        return
    expected = runner.pairing.convert(runner.weights)
    held = port.read_parts()
    for number, finding in enumerate(report.findings):
        name = finding.paddle_name
        if finding.stage == "weights" and name in expected and name in held:
            found = _hold(port, name, held[name], expected[name])
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
        apart = placed.placement.find_apart(placed.parts, port.mesh) if which == "outputs" else ()
        for axis, (first, second) in apart:
            found = gap(placed.parts[first], placed.parts[second])
            text = (
                f"its output differs between ranks {first} and {second} of {axis}, where it should be "
                f"the same, on inputs that agree; {found.words}"
            )
            ours = next((o for o, theirs in pairing.modules.items() if theirs == path), path)
            return replace(
                finding, kind="rank-apart", torch_name=ours, paddle_name=path, evidence=text
            )
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
    ours = runner.pairing.torch
    zeros = {n: np.zeros(t.shape) for n, t in ours.tensors.items() if t.is_parameter}
    # of all trained tensors: one that never arrived is zero
    expected = runner.pairing.convert(zeros | ours.spread(reference.gradients))
    for name, whole in expected.items():
        if not runner.pairing.paddle.tensors[name].is_trainable or name not in port.placements:
            continue
        held = _hold(port, name, [part.get(name) for part in port.gradients], whole)
        worst = max(map(gap, held.expected, held.parts), key=lambda one: one.relative)
        if worst.relative <= _ROUNDING:
            continue
        number = next((n for n, f in enumerate(report.findings)
                       if f.stage == "backward" and f.paddle_name == name), None)  # fmt: skip
        reason = explain(held)
        if number is not None:
            report.findings[number] = _with_ranks(report.findings[number], held)
        elif reason is not None:
            kind: FindingKind = "rank-shard" if reason.is_shard else "rank-reduction"
            known = _find_torch_name(runner.pairing, name)
            text = f"its gradient differs on {_name_ranks(held)}; {worst.words}"
            findings.add("backward", known, name, text, worst, kind=kind, cause=_say(reason))


def _hold(port: ParallelSide, name: str, parts: Sequence[Array | None], whole: Array) -> RankTensor:
    """Return what the ranks hold of a tensor, beside their parts of the whole; what is missing is zero."""
    placement = port.placements[name]
    expected = [placement.scatter(whole, port.mesh, rank) for rank in range(port.mesh.size)]
    filled = [np.zeros(e.shape) if p is None else p for p, e in zip(parts, expected, strict=True)]
    return RankTensor(filled, expected, placement, port.mesh)


def _name_ranks(held: RankTensor) -> str:
    ranks = held.wrong or list(range(held.mesh.size))
    if len(ranks) == held.mesh.size:
        return f"every rank of {held.mesh.name}"
    return f"{_name(ranks)} of {held.mesh.name}"


def _say(reason: Reason) -> str:
    named = not reason.axis or reason.axis in reason.text
    return reason.text if named else f"along {reason.axis}, {reason.text}"


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
    where = f"ranks {first} and {second}" + (f" of {one.axis}" if one.axis else "")
    if one.what.startswith("stream"):
        text = (
            f"{where} draw from the same random stream for the parts that each holds: the masks repeat"
            if one.what == "stream shared"
            else f"{where} draw from different random streams for a tensor that both hold: the masks differ"
        )
        theirs = one.name if pairing is None else pairing.modules.get(one.name, one.name)
        nothing = Gap(np.inf, 0.0, 0.0)
        findings.add("forward", one.name, theirs, text, nothing, kind="rank-dropout")
        return
    stage, what = _APART[one.what]
    known = [f for f in [*report.findings, *findings.report.findings] if f.stage == stage]
    if one.name and any(one.name in (f.paddle_name, *" ".join(f.places).split()) for f in known):
        return
    found = gap(one.parts[first], one.parts[second]) if one.parts else Gap(np.inf, 0.0, 0.0)
    tensor = None if pairing is None else pairing.paddle.tensors.get(one.name)
    ours = one.name if pairing is None or tensor is None else _find_torch_name(pairing, one.name)
    kind: FindingKind = "rank-apart"
    cause = f"it drifts apart along {one.axis}" if one.what == "tensor" else ""
    if tensor is not None and not tensor.is_parameter:
        stage, kind, cause = "forward", "running-statistics", ""
        what = "its running value" if one.what == "tensor" else what
    when = "" if one.step is None else f" after step {one.step}"
    text = f"{what} differs between {where}{when}, where it should be the same; {found.words}"
    findings.add(stage, ours, one.name, text, found, kind=kind, cause=cause)
