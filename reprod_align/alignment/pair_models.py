"""Pairs the tensors, modules and outputs of two sides at work, trying where names do not tell."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.layouts import try_alternatives
from reprod_align.alignment.leftovers import add_differing_weights
from reprod_align.alignment.pairing import Pairing, make_pairing
from reprod_align.alignment.runner import SEED, Runner
from reprod_align.base import PORT, REFERENCE
from reprod_align.base.text import is_within, last_part, parent
from reprod_align.errors import ReprodError
from reprod_align.match import (
    Evidence,
    collect_evidence,
    find_built_in,
    find_certain_places,
    keep_common_places,
    match_models,
    pair_by_value,
)
from reprod_align.model.backward import Projection, pair_outputs
from reprod_align.model.side import Inputs, ModelFailure, Side
from reprod_align.model.source.making import find_use
from reprod_align.model.source.parsing import find_branch, find_output
from reprod_align.model.trace import Trace, find_container
from reprod_align.model.watch import Keep
from reprod_align.randomness import KeyedDraws

import numpy as np


def pair_models(
    reference: Side,
    port: Side,
    inputs: Inputs,
    dtype: str,
    name_map: Mapping[str, str] | None,
    copy_weights: bool,
    findings: Findings,
    modules: Mapping[str, str] | None = None,
    defer: bool = False,
) -> Runner:
    """Pair the two sides, which are in their working state, and load the weights into the port.

    modules: those known to stand for each other, PyTorch's name -> Paddle's. defer: the backward
    passes may be left out, see `Side.run`. Unless copy_weights, each weight of the port that differs
    from PyTorch's gives a finding.
    Raises ReprodError if PyTorch's model returns no tensor, ModelFailure if it fails.
    """
    weights, described = reference.read_given(), reference.describe()
    first, eval_backward = _run_first(reference, inputs, findings, defer)
    held, model = port.read_given(), port.describe()
    torch = collect_evidence(described, _list_modules_called(first), weights, str(REFERENCE))
    as_defined = collect_evidence(model, [], held, str(PORT))

    def pair_in(order: Sequence[str]) -> tuple[Runner, Evidence]:
        paddle = as_defined.reorder_calls(order)
        match = replace(match_models(torch, paddle, name_map), modules=modules or {})
        pairing = make_pairing(match, torch, paddle)
        return Runner(
            reference, port, inputs, dtype, pairing, weights, held, first, eval_backward
        ), paddle

    runner, paddle, natural = _pair_at_once(pair_in, first.deferred)
    if natural is None:
        port.load(held)
        runner, paddle = pair_in(_order_of_port(port, inputs))
        runner.load_port()
    tried = try_alternatives(runner, torch, paddle, findings)
    natural = natural if tried is runner else None
    if not copy_weights:
        add_differing_weights(tried.pairing.match, weights, held, findings)
    runner = _pair_by_value(tried, torch, paddle, findings, natural)
    draws = first.drawn if natural is None else first.drawn or natural.drawn
    if draws or not eval_backward:
        runner, natural = share_draws(runner), None
    findings.report.pairs = runner.pairing.modules
    runner = _run_again(runner, first.deferred)
    if natural is not None:
        runner.made[False] = runner.expected, natural
    return runner


PairIn = Callable[[Sequence[str]], tuple[Runner, Evidence]]
"""pairs the two models; given the port's modules in calling order"""


def _pair_at_once(pair_in: PairIn, defer: bool) -> tuple[Runner, Evidence, Trace | None]:
    """Pair by names alone, and return the port's run on PyTorch's weights if that was right.

    It is where every tensor has a counterpart, and the order of that run's calls changes nothing.
    """
    runner, paddle = pair_in([])
    found = runner.pairing.match
    if found.torch_left or found.paddle_left or found.doubts or found.layouts:
        return runner, paddle, None
    runner.load_port()
    try:
        natural = runner.run_port(False, "values", defer=defer)
    except ModelFailure:
        return runner, paddle, None
    again, paddle = pair_in(_list_modules_called(natural))
    return again, paddle, natural if _pair_alike(runner.pairing, again.pairing) else None


def _pair_alike(first: Pairing, second: Pairing) -> bool:
    """Tell whether the same tensors are paired, in whatever order."""
    ours, theirs = first.match, second.match
    return (
        set(ours.pairs) == set(theirs.pairs)
        and set(first.loaded) == set(second.loaded)
        and replace(ours, pairs=[]) == replace(theirs, pairs=[])
    )


def _run_first(
    reference: Side, inputs: Inputs, findings: Findings, defer: bool
) -> tuple[Trace, bool]:
    """Return PyTorch's run in eval mode, and whether a backward pass is possible there."""
    draws = KeyedDraws(SEED, {})
    try:
        keep: Keep = "values" if defer else "all"
        trace = reference.run(inputs, False, draws, keep, Projection(), anew=True, defer=defer)
        if defer and trace.graph is None:  # no other mode can stand for this one's backward pass
            return _run_first(reference, inputs, findings, defer=False)
        backward = True
    except ModelFailure as error:
        leave_to_training(findings, error)
        draws = KeyedDraws(SEED, {})
        nothing = Projection(only=frozenset())
        trace, backward = reference.run(inputs, False, draws, "all", nothing, anew=True), False
    if not trace.outputs:
        raise ReprodError(f"the {REFERENCE} model returns no tensor: nothing can be compared")
    return trace, backward


def leave_to_training(findings: Findings, error: ModelFailure) -> None:
    """Note that eval mode allows no backward pass. Raises the error again if it is another one."""
    if error.what != "backward pass":
        raise error
    findings.remark(f"gradients are compared in train mode only: {error}")


def _run_again(runner: Runner, defer: bool) -> Runner:
    """Repeat PyTorch's run in eval mode if pairing has changed its draws or the outputs that count."""
    compared = runner.pairing.compared_outputs
    if compared is None:  # the port does not run
        return runner
    kept = runner.expected.deferred or compared == runner.expected.outputs.keys()
    if kept and not runner.expected.drawn:
        return runner
    keep: Keep = "values" if defer else "all"
    return replace(runner, expected=runner.run_reference(False, keep=keep, defer=defer))


def _list_modules_called(trace: Trace) -> list[str]:
    return list(dict.fromkeys(call.path for call in trace.calls))


def _order_of_port(port: Side, inputs: Inputs) -> list[str]:
    """Return the port's modules in calling order; [] if it does not run with its own weights."""
    try:
        return _list_modules_called(
            port.run(inputs, False, KeyedDraws(SEED, {}), "none", anew=True)
        )
    except ModelFailure:
        return []


def _pair_by_value(
    runner: Runner, torch: Evidence, paddle: Evidence, findings: Findings, natural: Trace | None
) -> Runner:
    """Pair outputs, and modules without tensors, by what comes out of them in eval mode.

    natural: the port's run there if it was made already.
    """
    try:
        port = natural or runner.run_port(False, "outputs", backward=False)
    except ModelFailure:
        return runner
    modules = dict(runner.pairing.modules)
    pair_by_value(modules, torch, paddle, runner.expected, port)
    pairing = replace(
        runner.pairing,
        modules=modules,
        places=find_certain_places(modules, torch, paddle),
        outputs=pair_outputs(runner.expected.outputs, port.outputs),
        activations=find_built_in(modules, torch, paddle, runner.expected),
    )
    _note_unpaired_outputs(pairing, runner.expected, port, findings, runner.port)
    return replace(runner, pairing=pairing)


def share_draws(runner: Runner) -> Runner:
    """Tell random draws apart only by modules that hold the same draws on both sides, in train mode.

    The two runs that tell are made only once, if they draw as they would anyway.
    """
    runner = replace(runner, draws_shared=True)
    try:
        ours = runner.run_reference(True, keep=runner.kept_in_training, of_inputs=True)
        theirs = runner.run_port(True, "outputs", of_inputs=True)
    except ModelFailure:
        return runner
    places = keep_common_places(runner.pairing.places, ours.drawn, theirs.drawn)
    if places == runner.pairing.places:
        runner.made[True] = ours, theirs
        return runner
    return replace(runner, pairing=replace(runner.pairing, places=places))


def _note_unpaired_outputs(
    pairing: Pairing, reference: Trace, port: Trace, findings: Findings, side: Side
) -> None:
    """Remark on outputs without a counterpart.

    A list that lost some of its tensors is a finding, and an output of a module that the port has too,
    with its weights, and does not call.
    """
    pairs = pairing.outputs or ()
    paired, met = {pair.expected for pair in pairs}, {pair.actual for pair in pairs}
    missing = [at for at in reference.outputs if at not in paired and at not in port.values]
    findings.report.unpaired = missing
    for container in dict.fromkeys(find_container(at) for at in missing):
        held = [at for at in reference.outputs if find_container(at) == container]
        left = [at for at in held if at not in paired]
        if container and len(left) < len(held):
            text = (
                f"{container} holds {len(held)} tensors in {REFERENCE} and {len(held) - len(left)} "
                f"of them in {PORT}: {', '.join(left)} is missing"
            )
            findings.add("forward", "", "", text, kind="output-missing")
    idle = {at: found for at in missing if (found := _find_idle(pairing, reference, port, at))}
    for at, (ours, theirs) in idle.items():
        text = (
            f"{REFERENCE}'s output {at or 'itself'} comes from here; the {PORT} model has this module and "
            "its weights, does not call it, and has no such output"
        )
        classes = side.find_classes(parent(theirs))
        unused = find_use(classes, last_part(theirs))
        condition = find_branch(unused) if unused is not None else ""
        place = unused or find_output(classes, at)
        findings.add(
            "forward", ours, theirs, text, lines=(None, place), kind="output-missing",
            cause=f"`{condition}` decides it" if condition else "",
        )  # fmt: skip
    missing = [at for at in missing if at not in idle]
    if missing:
        text = f"outputs of the {REFERENCE} model without a counterpart: {_list_outputs(missing)}"
        findings.leave_unjudged("output", text)
    extra = [at for at in port.outputs if at not in met and reference.values.get(at) is None]
    if extra and pairs:
        text = f"outputs of the {PORT} model without a counterpart: {_list_outputs(extra)}"
        findings.leave_unjudged("output", text)


def _find_idle(pairing: Pairing, reference: Trace, port: Trace, at: str) -> tuple[str, str] | None:
    """Return the module that makes an output in PyTorch, if the port has it and its weights, all idle."""
    called = {call.path for call in port.calls}
    output = reference.outputs[at].array
    for call in reference.calls[1:]:
        theirs = pairing.modules.get(call.path)
        if not theirs or theirs in called:
            continue
        loaded = any(is_within(name, theirs) for name in pairing.loaded_names)
        made = (leaf.array for leaf in call.outputs.values())
        if loaded and any(np.array_equal(array, output) for array in made):
            return call.path, theirs
    return None


def _list_outputs(names: list[str]) -> str:
    return ", ".join(name or "its output" for name in names)
