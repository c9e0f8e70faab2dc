"""The family "unseen" is what it says, by direct computation: each port with a fault behaves otherwise there
and nowhere else, its twin does not."""

import random
from collections.abc import Callable, Iterator
from typing import Any

from tests.pairs import proof, unseen
from tests.pairs.case import Case, Pair
from tests.pairs.families import CASES, judged
from tests.pairs.proof import difference

import numpy as np
import paddle
import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")

KINDS = {
    "trained": unseen.TRAINED,
    "output": unseen.OUTPUTS,
    "input": unseen.INPUTS,
    "kept": unseen.KEPT,
    "drawn": unseen.DRAWN,
    "backward": unseen.BACKWARD,
}
Value = dict[str, Any]
"""what one side does, by what is looked at"""
AGREES, SHOWS = 1e-9, 1e-7


def loaded(case: Case) -> Pair:
    """Return the pair in float64, the port with PyTorch's weights."""
    pair = case.build()
    proof._round_settings(pair.torch_model)
    proof.copy_weights(pair.torch_model, pair.paddle_model)
    return pair


def calls(pair: Pair) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Yield each model, and how it is called."""
    yield pair.torch_model, lambda: proof._torch_output(pair)
    yield pair.paddle_model, lambda: proof._paddle_output(pair)


def look(case: Case, at: Callable[[Pair], list[Value]]) -> float:
    """Return how far the sides are apart there, in float64, with the same dropout and statistics."""
    with proof.float64(), proof.numbered_dropout(), proof.paddle_running_statistics():
        return apart(at(loaded(case)))


def tensors_of(output: Any) -> Value:
    return {str(n): proof._array(leaf) for n, leaf in enumerate(proof._leaves(output))}


def plain_of(value: Any, at: str = "") -> Value:
    """Return what is no tensor in an output, by its place."""
    if isinstance(value, torch.Tensor | paddle.Tensor):
        return {}
    if isinstance(value, dict):
        items: Any = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    else:
        return {at: value}
    return {name: one for key, part in items for name, one in plain_of(part, f"{at}.{key}").items()}


def evaluated(pair: Pair) -> list[Value]:
    found = []
    for model, call in calls(pair):
        model.eval()
        found.append(tensors_of(call()))
    return found


def trained(pair: Pair) -> list[Value]:
    return [
        {name: True for name, one in pair.torch_model.named_parameters() if one.requires_grad},
        {name: True for name, one in pair.paddle_model.named_parameters() if not one.stop_gradient},
    ]


def plain_outputs(pair: Pair) -> list[Value]:
    return [plain_of(call()) for model, call in calls(pair) if model.eval() is not False]


def input_gradients(pair: Pair) -> list[Value]:
    found = []
    for model, tensor in ((pair.torch_model, torch.tensor), (pair.paddle_model, paddle.to_tensor)):
        model.eval()
        named = isinstance(pair.inputs, dict)
        arrays = pair.inputs if named else dict(enumerate(pair.inputs))
        given = {name: tensor(proof._wide(array)) for name, array in arrays.items()}
        for one in given.values():
            one.requires_grad = True
        output = model(**given) if named else model(*given.values())
        proof._weighted_sum(output).backward()
        found.append({str(name): proof._grad(one) for name, one in given.items()})
    return found


def evaluated_after_training(pair: Pair) -> list[Value]:
    found = []
    for model, call in calls(pair):
        model.train()
        call()
        model.eval()
        found.append(tensors_of(call()))
    return found


def drawn(pair: Pair) -> list[Value]:
    """Return each side's outputs in train mode from the same seeds, and what would be drawn next."""
    found = []
    for model, call in calls(pair):
        random.seed(5)
        np.random.seed(5)
        model.train()
        outputs = tensors_of(call())
        found.append(outputs | {"Python": random.random(), "numpy": np.random.random()})
    return found


def gradients(pair: Pair, losses: tuple[Any, Any]) -> list[Value]:
    found: list[Value] = [{}, {}]
    for (model, call), loss in zip(calls(pair), losses, strict=True):
        model.eval()
        loss(call()).backward()
    both = proof._Tensors(pair.torch_model, pair.paddle_model, {}).gradients()
    for number, arrays in enumerate(both):
        for value, array in zip(found, arrays, strict=True):
            value[str(number)] = array
    return found


def loss_gradients(pair: Pair) -> list[Value]:
    return gradients(pair, (pair.options["torch_loss"], pair.options["paddle_loss"]))


LOOKS: dict[str, Callable[[Pair], list[Value]]] = {
    "trained": trained,
    "output": plain_outputs,
    "input": input_gradients,
    "kept": evaluated_after_training,
    "drawn": drawn,
    "backward": loss_gradients,
}


def apart(values: list[Value]) -> float:
    """Return the largest relative difference of two sides; inf where they hold other things."""
    ours, theirs = values
    if ours.keys() != theirs.keys():
        return float("inf")
    return max((_apart(ours[name], theirs[name]) for name in ours), default=0.0)


def _apart(one: Any, other: Any) -> float:
    if isinstance(one, str):
        return 0.0 if one == other else float("inf")
    return proof._relative(np.asarray(one, "float64"), np.asarray(other, "float64"))


def every(faulty: bool) -> list[Any]:
    return [
        pytest.param(kind, case, id=case.name)
        for kind, cases in KINDS.items()
        for case in cases
        if bool(case.culprits) == faulty
    ]


@pytest.mark.parametrize(("kind", "case"), every(faulty=True))
def test_a_fault_shows_where_its_kind_looks_and_not_in_outputs(kind: str, case: Case) -> None:
    assert look(case, evaluated) < AGREES
    assert look(case, LOOKS[kind]) > SHOWS


@pytest.mark.parametrize(("kind", "case"), every(faulty=False))
def test_a_twin_agrees_there_too(kind: str, case: Case) -> None:
    assert look(case, evaluated) < AGREES
    assert look(case, LOOKS[kind]) < AGREES
    if kind != "drawn":  # its two sides draw one after the other
        assert difference(case) < AGREES


@pytest.mark.parametrize("case", [case for case in unseen.BACKWARD if case.culprits])
def test_a_projection_does_not_tell_of_a_backward_pass_that_looks_at_its_size(case: Case) -> None:
    assert look(case, lambda pair: gradients(pair, (proof._weighted_sum,) * 2)) < AGREES


def test_three_faults_of_each_kind_each_with_a_twin_from_several_families() -> None:
    assert sum(map(len, KINDS.values())) == len(unseen.CASES)
    for cases in KINDS.values():
        faulty = [case.name for case in cases if case.culprits]
        twins = {case.name for case in cases if not case.culprits}
        assert len(faulty) >= 3
        assert {name.replace(":", " ok:", 1) for name in faulty} <= twins
        families = {type(case.build().torch_model).__bases__ for case in cases}
        assert len(families) >= 3


def test_what_was_left_unjudged_tells_of_a_case_that_asks_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dataclasses import replace

    from reprod_align.report import NotJudged, Report
    from tests.pairs import families

    case = CASES["unseen/drawn: layers dropped by numpy for Python"]
    said = Report(checks=[], not_judged=[NotJudged("random numbers", "numpy's generator")])
    monkeypatch.setattr(Report, "passed", True)
    monkeypatch.setattr(families, "align", lambda *args, **options: said)
    assert judged(case).named and not judged(case).passed
    assert judged(replace(case, noted="state")).passed and judged(replace(case, noted="")).passed
