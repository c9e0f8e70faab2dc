"""Pairs the tensors and modules of two sides at work, trying where names do not tell."""

from collections.abc import Mapping, Set
from itertools import islice

from reprod_align.alignment.bench import SEED, Bench
from reprod_align.alignment.comparing import output_gaps
from reprod_align.alignment.weights_check import weight_findings
from reprod_align.base.difference import RELATIVE_TOLERANCE, Gap
from reprod_align.base.keyed_draws import KeyedDraws
from reprod_align.match import (
    Match,
    alternatives,
    certain_places,
    common_places,
    evidence,
    match,
    module_pairs,
    pair_by_value,
)
from reprod_align.model.projection import root_pairs
from reprod_align.model.side import ModelFailure

import numpy as np

_CLEARLY = 1e-3
"""of how far the outputs are apart: what the right pairing leaves at most"""
_TRIES = 48  # other pairings that are tried before giving up


def pair_models(bench: Bench, name_map: Mapping[str, str] | None, copy_weights: bool) -> None:
    """Pair tensors and modules, compare the weights if they are not to be copied, load them."""
    bench.held = held = bench.port.values()
    first_calls = list(dict.fromkeys(call.path for call in bench.expected.calls))
    bench.torch = evidence(bench.torch_info, first_calls, bench.torch_values, "PyTorch")
    bench.paddle = evidence(bench.paddle_info, _port_order(bench), held, "Paddle")
    _use(bench, match(bench.torch, bench.paddle, name_map))
    if not copy_weights:
        for finding in weight_findings(bench.match, bench.torch_values, held):
            bench.result.findings.append(finding)
        bench.check("weights", "weights as they came", 0.0, not bench.result.findings)
    bench.load()
    _try_alternatives(bench)
    _by_value(bench)
    _common_draws(bench)


def _port_order(bench: Bench) -> list[str]:
    """Return the port's modules in calling order; [] if it does not run with its own weights."""
    try:
        trace = bench.port.run(bench.inputs, False, KeyedDraws(SEED, {"": ""}), "none")
    except ModelFailure:
        return []
    return list(dict.fromkeys(call.path for call in trace.calls))


def _use(bench: Bench, found: Match) -> None:
    """Take this match as the pairing."""
    bench.match = found
    bench.pairs = module_pairs(found, bench.torch, bench.paddle)
    _named(bench)


def _named(bench: Bench) -> None:
    """Note what follows from the module pairs."""
    bench.names = {theirs: ours for ours, theirs in bench.pairs.items()}
    bench.places = certain_places(bench.pairs, bench.torch, bench.paddle)
    bench.result.pairs = bench.pairs


def _try_alternatives(bench: Bench) -> None:
    """Where tensors could be paired or laid out otherwise and the outputs differ, try; keep what agrees.

    What is left of a port that computes with float32 inside, or that has a small fault elsewhere, is
    far less than what a wrong pairing makes.
    """
    found = bench.match
    present = _apart(bench) if found.doubts or found.layouts else 0.0
    if present <= RELATIVE_TOLERANCE:
        return
    enough = (
        max(RELATIVE_TOLERANCE, _CLEARLY * present) if np.isfinite(present) else RELATIVE_TOLERANCE
    )
    for words, other in islice(alternatives(found), _TRIES):
        _use(bench, other)
        bench.load()
        if _apart(bench) <= enough:
            bench.result.remarks.append(f"paired by trying, since names don't tell: {words}")
            return
    _use(bench, found)
    bench.load()


def _common_draws(bench: Bench) -> None:
    """Tell random draws apart only by modules that hold the same of them on both sides."""
    bench.port_buffers = bench.not_loaded()
    try:
        ours = bench.run_reference(True, keep="none").drawn
        theirs = bench.run_port(True, "none", None).drawn
    except ModelFailure:
        return
    bench.places = common_places(bench.places, ours, theirs)


def _by_value(bench: Bench) -> None:
    """Pair what holds no tensors anew by what comes out of it in eval mode."""
    try:
        trace = bench.run_port(False, "outputs", None, backward=False)
    except ModelFailure:
        return
    pair_by_value(bench.pairs, bench.torch, bench.paddle, bench.expected, trace)
    _named(bench)
    bench.roots = tuple(root_pairs(dict(bench.expected.outputs), dict(trace.outputs)))
    paired = frozenset(pair.expected for pair in bench.roots)
    bench.wanted = paired
    missing = [at for at in bench.expected.outputs if at not in paired]
    short = dict.fromkeys(at.rpartition("[")[0] for at in missing if at.endswith("]"))
    for container in short:
        if container and any(at.rpartition("[")[0] == container for at in paired):
            _shorter(bench, container, paired)
    if missing:
        named = ", ".join(at or "its output" for at in missing)
        bench.remark(f"outputs of the PyTorch model without a counterpart: {named}")
    met = {pair.actual for pair in bench.roots}
    extra = ", ".join(at or "its output" for at in trace.outputs if at not in met)
    if extra and bench.roots:
        bench.remark(f"outputs of the Paddle model without a counterpart: {extra}")


def _shorter(bench: Bench, container: str, paired: Set[str]) -> None:
    """Add a finding for a list among the outputs of which the port returns a part only."""
    held = [at for at in bench.expected.outputs if at.rpartition("[")[0] == container]
    kept = [at for at in held if at in paired]
    left = ", ".join(at for at in held if at not in paired)
    text = (f"{container} holds {len(held)} tensors in PyTorch and {len(kept)} of them in Paddle: "
            f"{left} is missing")  # fmt: skip
    bench.add("forward", "", "", text, Gap(np.inf, 0.0, 0.0, ""))


def _apart(bench: Bench) -> float:
    """Return how far the port's outputs in eval mode are from the reference's, relative."""
    try:
        trace = bench.run_port(False, "ends", None, backward=False)
    except ModelFailure:
        return np.inf
    gaps = output_gaps(bench, bench.expected, trace)
    return max((found.exceed * RELATIVE_TOLERANCE for _, found in gaps), default=np.inf)
