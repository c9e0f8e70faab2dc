"""Weights that were converted before: are they the reference's? And what has no counterpart?"""

from collections.abc import Mapping

from reprod_align.base.difference import gap
from reprod_align.causes.entries import with_entry
from reprod_align.match import Match, TensorPair
from reprod_align.model.side import ModelInfo, TensorInfo
from reprod_align.model.trace import Array
from reprod_align.report import Finding

import numpy as np

_CONVERTED = 1e-6
"""relative: a weight may have gone through float32 on its way"""


def weight_findings(
    found: Match, torch: Mapping[str, Array], paddle: Mapping[str, Array]
) -> list[Finding]:
    """Compare the weights that the Paddle model holds with PyTorch's; a finding for each that differs."""
    findings = []
    for pair in found.pairs:
        for name, expected in pair.to_paddle(torch).items():
            apart = gap(expected, paddle[name], relative=_CONVERTED)
            if not apart.ok and not _fits_another_way(pair, torch, paddle, name):
                message = (
                    with_entry(_cause(name, expected, paddle))
                    or f"the weight differs; {apart.words}"
                )
                ours = " + ".join(pair.torch)
                findings.append(
                    Finding("weights", ours, name, message, apart.difference, apart.tolerance)
                )
    return findings


def tie_findings(found: Match, torch: ModelInfo, paddle: ModelInfo) -> list[Finding]:
    """Return a finding for each trained parameter that is tied to another on one side alone."""
    findings, first = [], dict[str, tuple[str, str]]()
    for pair in found.pairs:
        ours, theirs = torch.tensors[pair.torch[0]], paddle.tensors[pair.paddle[0]]
        if len(pair.torch) + len(pair.paddle) > 2 or not (
            ours.is_trainable and theirs.is_trainable
        ):
            continue
        other, tie = first.setdefault(ours.tie, (ours.name, theirs.tie))
        if tie != theirs.tie:
            message = (f"tied to {other} in PyTorch, a parameter of its own in Paddle: "
                       "equal at first, they are trained apart")  # fmt: skip
            findings.append(Finding("weights", ours.name, theirs.name, message, np.inf, 0.0))
    return findings


def left_over(
    found: Match,
    gradients: Mapping[str, Array],
    torch: ModelInfo,
    paddle: ModelInfo,
    port_gradients: Mapping[str, Array],
    all_agree: bool,
) -> tuple[list[Finding], list[str]]:
    """Return findings and remarks on tensors without a counterpart.

    One that the outputs depend on is a fault, unless both sides have some left and all numbers
    agree all the same: then they hold the same in a form that could not be paired.
    """
    ours = [torch.tensors[name] for name in found.torch_left]
    theirs = [paddle.tensors[name] for name in found.paddle_left]
    used = [t for t in ours if t.is_parameter and _is_felt(gradients.get(t.name))]
    extra = [t for t in theirs if t.is_parameter and _is_felt(port_gradients.get(t.name))]
    idle = [t.name for t in ours if t not in used] + [
        f"{t.name} (Paddle)" for t in theirs if t not in extra
    ]
    remarks = [f"without a counterpart and without effect: {', '.join(idle)}"] if idle else []
    if used and extra and all_agree:
        names = ", ".join(t.name for t in (*used, *extra))
        return [], [*remarks, f"not paired, though all numbers agree: {names}"]
    findings = [_missing(t, found, paddle) for t in used]
    if not used or not findings:
        findings += [_extra(t, found) for t in extra]
    return findings, remarks


def _missing(tensor: TensorInfo, found: Match, paddle: ModelInfo) -> Finding:
    owner = found.owners.get(tensor.owner, "")
    twin = paddle.tensors.get(tensor.name)
    if twin is not None and twin.name in found.paddle_left:
        message = f"its shape is {tensor.shape} in PyTorch and {twin.shape} in Paddle"
        if twin.shape == tensor.shape:
            message = "not paired with its namesake, since the modules that hold them differ"
        return Finding("weights", tensor.name, twin.name, message, np.inf, 0.0)
    rest = (
        f"; left in Paddle: {', '.join(found.paddle_left[:6])} (name_map can pair them)"
        if found.paddle_left
        else ""
    )
    message = f"{tensor.shape}: the Paddle model has no counterpart of this parameter{rest}"
    return Finding("weights", tensor.name, owner, message, np.inf, 0.0)


def _extra(tensor: TensorInfo, found: Match) -> Finding:
    owners = {theirs: ours for ours, theirs in found.owners.items()}
    message = f"{tensor.shape}: the PyTorch model has no counterpart of this Paddle parameter"
    return Finding("weights", owners.get(tensor.owner, ""), tensor.name, message, np.inf, 0.0)


def _is_felt(gradient: Array | None) -> bool:
    return gradient is not None and bool(np.any(gradient != 0))


def _fits_another_way(
    pair: TensorPair, torch: Mapping[str, Array], paddle: Mapping[str, Array], name: str
) -> bool:
    """Tell whether a bare parameter, which could lie in two ways, lies in the other."""
    if len(pair.torch) > 1 or len(pair.paddle) > 1:
        return False
    whole = torch[pair.torch[0]]
    return any(gap(lay(whole), paddle[name], relative=_CONVERTED).ok for (lay,) in pair.choices)


def _cause(name: str, expected: Array, paddle: Mapping[str, Array]) -> str:
    """Return what was done to the weight, where something known was; "" otherwise."""
    actual = paddle[name]
    if not actual.any():
        return "the weight is all zeros in Paddle: it was not converted"
    for words, made in _mistakes(expected):
        if made.shape == actual.shape and gap(made, actual, relative=_CONVERTED).ok:
            return words
    for other, values in paddle.items():
        if other != name and values.shape == expected.shape and _same(expected, values):
            return f"the values that belong here are in {other}"
    scale = _constant_ratio(expected, actual)
    return f"the weight is {scale:.6g} times PyTorch's" if scale else ""


def _mistakes(expected: Array) -> list[tuple[str, Array]]:
    mistakes = (
        [("the sign is wrong", -expected), ("the rows are in reverse order", expected[::-1])]
        if expected.ndim
        else []
    )
    if expected.ndim == 2:
        mistakes.insert(
            0,
            (
                "not transposed: a Linear weight is (out, in) in PyTorch and (in, out) in Paddle",
                expected.T,
            ),
        )
    if expected.ndim and expected.shape[0] > 1:
        mistakes += [
            (f"shifted by {by} along the first axis", np.roll(expected, by, axis=0))
            for by in (1, -1)
        ]
    for parts in (2, 3, 4):
        for axis in range(min(expected.ndim, 2)):
            mistakes += _reordered(expected, parts, axis)
    return mistakes


def _reordered(expected: Array, parts: int, axis: int) -> list[tuple[str, Array]]:
    """Return the tensor with its blocks (q, k, v; gates) in another order."""
    from itertools import permutations

    if expected.shape[axis] % parts:
        return []
    blocks = np.split(expected, parts, axis=axis)
    made = []
    for order in permutations(range(parts)):
        if order != tuple(range(parts)):
            words = (
                f"its {parts} blocks (gates, or q k v) are in the order {order} along axis {axis}"
            )
            made.append((words, np.concatenate([blocks[at] for at in order], axis=axis)))
    return made


def _same(expected: Array, actual: Array) -> bool:
    return (
        bool((expected != expected.flat[0]).any()) and gap(expected, actual, relative=_CONVERTED).ok
    )


def _constant_ratio(expected: Array, actual: Array) -> float:
    if expected.shape != actual.shape or not expected.all():
        return 0.0
    ratios = actual / expected
    first = float(ratios.flat[0])
    return first if np.allclose(ratios, first, rtol=1e-5, atol=0) else 0.0
