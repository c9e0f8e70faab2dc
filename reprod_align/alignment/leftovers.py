"""Judges weights by what the two models hold: those without counterpart, shared, trained on one side alone.

Also weights that were converted before: are they the reference's, and what was done to them if not?
"""

from collections.abc import Mapping, Sequence

from reprod_align.alignment.audit import describe_differences
from reprod_align.alignment.comparing import Pass
from reprod_align.alignment.findings import Findings
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.blocks import Array
from reprod_align.base.difference import gap
from reprod_align.base.text import parent, shorten
from reprod_align.causes import explain_weight
from reprod_align.causes.mismatch import cite
from reprod_align.match import Match, TensorPair
from reprod_align.model.side import ModelFailure, TensorInfo
from reprod_align.report import Finding

import numpy as np


def add_split_ties(pairing: Pairing, findings: Findings) -> None:
    """Add a finding for each trained parameter that is tied to another in PyTorch alone."""
    for ours, other, theirs in pairing.split_ties:
        text = (f"tied to {other} in {REFERENCE}, a parameter of its own in {PORT}: "
                "equal at first, they diverge in training")  # fmt: skip
        findings.add("weights", ours, theirs, text, kind="parameter-tied")


def add_leftovers(runner: Runner, findings: Findings) -> None:
    """Add a finding for each parameter without a counterpart that the outputs depend on.

    If both sides have such parameters and all numbers agree, the two hold the same in a form that
    could not be paired: that is a remark.
    """
    pairing = runner.pairing
    left, (used, extra) = _list_left(pairing), _find_used(runner, *_take_gradients(runner))
    idle = [t.name for t in left[0] if t not in used]
    idle += [f"{t.name} ({PORT})" for t in left[1] if t not in extra]
    if idle:
        findings.remark(
            f"without a counterpart, and without effect on the outputs: {', '.join(idle)}"
        )
    if used and extra and all(check.passed for check in findings.report.checks):
        names = ", ".join(tensor.name for tensor in (*used, *extra))
        findings.remark(f"not paired, though all numbers agree: {names}")
    elif used:
        findings.put_first(_one_per_module(pairing, [_report_missing(t, pairing) for t in used]))
    else:
        findings.put_first(_one_per_module(pairing, [_report_extra(t, pairing) for t in extra]))


def find_idle(runner: Runner) -> tuple[list[str], list[str]]:
    """Return the parameters without a counterpart that the outputs do not depend on, of each side.

    Where a side gives no gradients, nothing is known of its parameters.
    """
    gradients = _take_gradients(runner)
    left, used = _list_left(runner.pairing), _find_used(runner, *gradients)
    idle = [[t.name for t in tensors if known and t.is_parameter and t not in needed]
            for known, tensors, needed in zip(gradients, left, used, strict=True)]  # fmt: skip
    return idle[0], idle[1]


def _list_left(pairing: Pairing) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """Return the tensors of each side that found no counterpart."""
    found = pairing.match
    ours = [pairing.torch.tensors[name] for name in found.torch_left]
    return ours, [pairing.paddle.tensors[name] for name in found.paddle_left]


def _take_gradients(runner: Runner) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
    """Return the gradients of each side's parameters; Paddle's only if some have no counterpart."""
    left = runner.pairing.match.paddle_left
    ours = runner.pairing.torch.spread(runner.expected.gradients)
    return ours, _take_gradients_of_port(runner) if left else {}


def _find_used(
    runner: Runner, ours: Mapping[str, Array], theirs: Mapping[str, Array]
) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """Return the tensors without a counterpart that have a gradient."""
    left = _list_left(runner.pairing)
    return _with_gradient(left[0], ours), _with_gradient(left[1], theirs)


def _take_gradients_of_port(runner: Runner) -> Mapping[str, Array]:
    """Return the port's gradients of the projection, {} if it does not run."""
    try:
        return runner.pairing.paddle.spread(runner.run_port(False, "none").gradients)
    except ModelFailure:
        return {}


def _with_gradient(
    tensors: Sequence[TensorInfo], gradients: Mapping[str, Array]
) -> list[TensorInfo]:
    """Return the parameters whose gradient is not zero."""
    return [t for t in tensors if t.is_parameter and np.any(gradients.get(t.name, 0))]


def _report_missing(tensor: TensorInfo, pairing: Pairing) -> Finding:
    """Return the finding for a parameter that Paddle's model lacks."""
    found = pairing.match
    twin = pairing.paddle.tensors.get(tensor.name)
    if twin is not None and twin.name in found.paddle_left:
        text = f"its shape is {tensor.shape} in {REFERENCE} and {twin.shape} in {PORT}"
        if twin.shape == tensor.shape:
            text = "not paired with its namesake, since the modules that hold them differ"
        return Finding(
            "weights", tensor.name, twin.name, text, np.inf, 0.0, kind="parameter-unpaired"
        )
    text = f"{tensor.shape}: the {PORT} model has no counterpart of this parameter"
    owner = _find_owner(tensor, pairing)
    if found.paddle_left:
        text += f"; left in {PORT}: {', '.join(found.paddle_left[:6])} (name_map can pair them)"
    return Finding("weights", tensor.name, owner, text, np.inf, 0.0, kind="parameter-unpaired")


def _find_owner(tensor: TensorInfo, pairing: Pairing) -> str:
    """Return Paddle's module that should hold the counterpart, or the first known one around it.

    Of several, which hold the parts of what PyTorch has in one, the one that lacks its part.
    """
    found, paddle = pairing.match, pairing.paddle
    beside = [theirs for pair in found.pairs for theirs in pair.paddle
              if tensor.owner in {parent(name) for name in pair.torch}]  # fmt: skip
    owners = list(dict.fromkeys(map(parent, beside)))
    lacking = [owner for owner in owners if f"{owner}.{tensor.role}" not in paddle.tensors]
    path = tensor.owner
    while path and not (lacking or owners) and path not in found.owners:
        if path in paddle.modules:
            return path
        path = parent(path)
    return next(iter([*lacking, *owners]), found.owners.get(path, ""))


def _report_extra(tensor: TensorInfo, pairing: Pairing) -> Finding:
    """Return the finding for a parameter that PyTorch's model lacks."""
    owners = {theirs: ours for ours, theirs in pairing.match.owners.items()}
    text = f"{tensor.shape}: the {REFERENCE} model has no counterpart of this {PORT} parameter"
    other = owners.get(tensor.owner, "")
    return Finding("weights", other, tensor.name, text, np.inf, 0.0, kind="parameter-unpaired")


def _one_per_module(pairing: Pairing, findings: Sequence[Finding]) -> list[Finding]:
    """Put one finding in place of those of a module whose counterpart is set differently."""
    kept: dict[str, Finding] = {}
    for finding in findings:
        key, owner = finding.torch_name or finding.paddle_name, finding.torch_name
        owner = owner if owner in pairing.torch.modules else parent(owner)
        other = pairing.modules.get(owner, owner)
        if owner and pairing.settings_differ(owner, other):
            settings = describe_differences(
                d for d in pairing.compare_settings(owner, other) if d.conclusive
            )
            text = "its weights have no counterpart"
            key = owner
            finding = Finding(
                "weights",
                owner,
                other,
                text,
                np.inf,
                0.0,
                kind="parameter-unpaired",
                settings=settings,
            )
        kept.setdefault(key, finding)
    return list(kept.values())


_CONVERTED = 1e-6
"""relative: a weight may have gone through float32 on its way"""

Weights = Mapping[str, Array]


def add_differing_weights(
    found: Match, torch: Weights, paddle: Weights, findings: Findings
) -> None:
    """Compare the weights that the Paddle model holds with PyTorch's; add a finding for each that differs."""
    for pair in found.pairs:
        for name, expected in pair.to_paddle(torch).items():
            apart = gap(expected, paddle[name], _CONVERTED)
            if not apart.ok and not _fits_another_way(pair, torch, paddle[name]):
                cause = find_cause(name, expected, paddle)
                text = cause or f"the weight differs; {apart.words}"
                findings.add("weights", " + ".join(pair.torch), name, text, apart, kind="weight")
    findings.check("weights", "weights as they came", 0.0, not findings.report.findings)


def _fits_another_way(pair: TensorPair, torch: Weights, actual: Array) -> bool:
    """Tell whether a bare parameter, which could lie in two ways, lies in the other."""
    if not pair.either_way:
        return False
    (other,) = pair.lay_other_way().make([torch[pair.torch[0]]], "paddle")
    return _are_equal(other, actual)


def find_cause(name: str, expected: Array, paddle: Weights) -> str:
    """Return what was done to Paddle's weight `name`, where something known was; "" otherwise."""
    actual = paddle[name]
    if not actual.any():
        return f"the weight is all zeros in {PORT}: it was not converted"
    if expected.ndim == 2 and _are_equal(expected.T, actual):
        words = "not transposed: a Linear weight is (out, in) in PyTorch and (in, out) in Paddle"
        return cite(words, "linear-weight")
    if words := explain_weight(expected, actual):
        return words
    if expected.size and (expected != expected.flat[0]).any():
        for other, values in paddle.items():
            if other != name and _are_equal(expected, values):
                return f"the values that belong here are in {other}"
    scale = _constant_ratio(expected, actual)
    return f"the weight is {scale:.6g} times {REFERENCE}'s" if scale else ""


def _are_equal(expected: Array, actual: Array) -> bool:
    return expected.shape == actual.shape and gap(expected, actual, _CONVERTED).ok


def _constant_ratio(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape or not expected.all():
        return 0.0
    ratios = actual / expected
    first = float(ratios.flat[0])
    return first if np.allclose(ratios, first, rtol=1e-5, atol=0) else 0.0


_NAMED = 6  # tensors in one sentence


def judge_one_sided(pairing: Pairing, findings: Findings, passes: Sequence[Pass]) -> None:
    """Add a finding for each tensor that one side alone trains, where nothing else was found.

    A gradient of zero counts: it need not stay zero. Without any gradient both sides leave the tensor
    as it is: that is noted as not judged.
    """
    compared = [done for done in passes if done.gradients]
    if not compared or findings.at_stage("forward", "backward"):
        return
    reached = frozenset[str]().union(*(done.reached for done in compared))
    for ours, theirs in pairing.one_sided:
        if theirs in reached:
            text = pairing.describe_frozen(ours, theirs)
            finding = Finding("backward", ours, theirs, text, np.inf, 0.0, kind="parameter-frozen")
            findings.report.findings.append(finding)
    idle = [ours for ours, theirs in pairing.one_sided if theirs not in reached]
    if idle:
        text = f"trained on one side alone, and no gradient reaches them: {shorten(idle, _NAMED)}"
        findings.leave_unjudged("gradient", text)
