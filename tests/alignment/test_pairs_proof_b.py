"""The suite's transformers and recurrent networks are what their names say, by float64 alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.pairs import bert, decoder, encoder, proof, rnn
from tests.pairs.case import Case
from tests.pairs.encoder import Part, Twins, carry, paddle_parts, torch_parts

import numpy as np
import pytest
import torch

FAITHFUL, FAULTY = 1e-9, 1e-7
Arrays = Iterator[tuple[np.ndarray, np.ndarray]]


class TwinTensors:
    """Both sides' parameters part by part, where one side may hold several in one."""

    def __init__(self, pair: Twins):
        self.torch = torch_parts(pair.torch_model, pair.torch_rules)
        self.paddle = paddle_parts(pair.paddle_model, pair.paddle_rules)

    def values(self) -> Arrays:
        yield from self._both(lambda part: part.value)

    def gradients(self) -> Arrays:
        yield from self._both(_gradient)

    def buffers(self) -> Arrays:
        yield from ()

    def _both(self, value: Callable[[Part], np.ndarray]) -> Arrays:
        shared = self.torch.keys() & self.paddle.keys()
        for name in shared:
            yield value(self.torch[name]).copy(), value(self.paddle[name]).copy()
        for parts in (self.torch, self.paddle):
            paired = {id(parts[name].tensor) for name in shared}
            for part in parts.values():
                if id(part.tensor) not in paired:
                    yield value(part).copy(), np.zeros_like(part.value)


def _gradient(part: Part) -> np.ndarray:
    gradient = part.tensor.grad
    return np.zeros_like(part.value) if gradient is None else part.of(gradient.numpy())


@contextmanager
def explicit_attention() -> Iterator[None]:
    """Let torch's fused attention drop out as `functional.dropout` does, of which there is a stand-in."""
    own = torch.nn.functional.scaled_dot_product_attention

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
        if dropout_p == 0.0:
            return own(query, key, value, attn_mask, 0.0, is_causal, **options)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros(attn_mask.shape).masked_fill(~attn_mask, -torch.inf)
        scores = scores if attn_mask is None else scores + attn_mask
        return torch.nn.functional.dropout(scores.softmax(-1), dropout_p) @ value

    torch.nn.functional.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        torch.nn.functional.scaled_dot_product_attention = own


def differences(case: Case) -> dict[str, float]:
    """Return the relative difference by what differs; `proof.difference` takes no fused parameters."""
    with proof.float64(), explicit_attention():
        pair: Any = case.build()
        copied = pair.options.get("copy_weights", True)
        if copied:
            carry(pair)
        found = list(proof._stages(pair, TwinTensors(pair)))
    found = [0.0, 0.0, *found] if copied else found
    weights, _, evaluated, trained, loss, gradients, *_ = found
    return {
        "weights": weights,
        "forward": max(evaluated, trained),
        "loss": loss,
        "backward": gradients,
        "any": max(found),
    }


FAMILIES = {"bert": bert, "decoder": decoder, "encoder": encoder, "rnn": rnn}
RANDOM = {case.name for case in rnn.RANDOM}


def _cases(faithful: bool) -> list[Any]:
    return [
        pytest.param(case, id=f"{family}: {case.name}")
        for family, module in FAMILIES.items()
        for case in module.CASES
        if bool(case.culprits) != faithful and case.name not in RANDOM
    ]


@pytest.mark.parametrize("case", _cases(faithful=True))
def test_faithful(case: Case) -> None:
    found = differences(case)
    assert found["any"] < FAITHFUL, found


@pytest.mark.parametrize("case", _cases(faithful=False))
def test_faulty(case: Case) -> None:
    found = differences(case)
    assert found["any"] > FAULTY, found
    stages = case.stages - {"audit", "optimizer", "schedule"}
    assert not stages or max(found[stage] for stage in stages) > FAULTY, found
    if stages & {"backward", "loss"}:
        assert found["forward"] < FAITHFUL, found


@pytest.mark.parametrize("case", _cases(faithful=False))
def test_culprits_exist(case: Case) -> None:
    pair = case.build()
    owners = (
        pair.torch_model.named_modules(),
        pair.paddle_model.named_sublayers(include_self=True),
    )
    tensors = (pair.torch_model.named_parameters(), pair.paddle_model.state_dict().items())
    buffers = (pair.torch_model.named_buffers(), pair.paddle_model.named_buffers())
    names = [{name for part in of for name, _ in part} for of in (owners, tensors, buffers)]
    assert case.culprits & set().union(*names), case.culprits


def test_names_are_unique() -> None:
    for module in FAMILIES.values():
        names = [case.name for case in module.CASES]
        assert sorted(set(names)) == sorted(names)


def test_dropout_inside_a_recurrent_network() -> None:
    """No stand-in reaches it: only whether the states vary from call to call can be told."""
    varies = {}
    for case in rnn.RANDOM:
        with proof.float64():
            pair: Any = case.build()
            carry(pair)
        models = pair.torch_model.train(), pair.paddle_model
        models[1].train()
        calls = (proof._torch_output, proof._paddle_output)
        spread = [abs(call(pair)[0] - call(pair)[0]).max().item() > 0 for call in calls]
        varies[bool(case.culprits)] = spread
        for model in models:
            model.eval()
        assert proof._output_difference(*(call(pair) for call in calls)) < FAITHFUL
    assert varies == {False: [True, True], True: [True, False]}
