"""The user's functions: what they make, and what they can reach."""

from contextlib import nullcontext
from functools import partial

from reprod_align.backends.paddle import side as paddle_backend
from reprod_align.backends.torch import side as torch_backend
from reprod_align.backends.torch.private import contents
from reprod_align.errors import ReprodError
from reprod_align.model.functions import Makers, find_reachable

import paddle
import pytest
import torch


def make_torch() -> tuple[Makers, torch.nn.Module]:
    """Return what makes PyTorch's optimizers, and a model for them."""
    return Makers(torch_backend, lambda what: nullcontext()), torch.nn.Linear(2, 2)


def make_paddle() -> tuple[Makers, paddle.nn.Layer]:
    """Return the twin of `make_torch`."""
    return Makers(paddle_backend, lambda what: nullcontext()), paddle.nn.Linear(2, 2)


@pytest.mark.parametrize("make", [make_torch, make_paddle])
def test_an_optimizer_is_required(make) -> None:
    makers, model = make()
    with pytest.raises(ReprodError, match=f"the {makers.name} side has no optimizer"):
        makers.make_optimizer(None, model)


def test_an_optimizer_must_be_new_each_time() -> None:
    makers, model = make_torch()
    used = torch.optim.SGD(model.parameters(), lr=0.5)
    assert makers.make_optimizer(lambda _: used, model) is used
    with pytest.raises(ReprodError, match="returned the same optimizer twice"):
        makers.make_optimizer(lambda _: used, model)


def test_the_schedule_of_an_optimizer_must_be_new_too() -> None:
    makers, model = make_paddle()
    rate = paddle.optimizer.lr.StepDecay(0.5, 2)

    def make(model: paddle.nn.Layer) -> paddle.optimizer.Optimizer:
        return paddle.optimizer.SGD(rate, model.parameters())

    makers.make_optimizer(make, model)
    with pytest.raises(ReprodError, match="returned the same scheduler twice"):
        makers.make_optimizer(make, model)


def test_a_scheduler_must_step() -> None:
    makers, model = make_torch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    assert makers.make_scheduler(None, optimizer) is None
    with pytest.raises(ReprodError, match="must return a scheduler with step"):
        makers.make_scheduler(lambda _: 0.5, optimizer)


def test_a_scheduler_that_is_not_attached_is_attached_with_one_remark() -> None:
    makers, model = make_paddle()
    for _ in range(2):
        optimizer = paddle.optimizer.SGD(0.5, model.parameters())
        scheduler = makers.make_scheduler(
            lambda _: paddle.optimizer.lr.StepDecay(0.5, 1, 0.5), optimizer
        )
        makers.advance(scheduler, 1.0)
        assert optimizer.get_lr() == 0.25
    assert len(makers.remarks) == 1 and "was attached here" in makers.remarks[0]


def test_a_plateau_is_told_the_loss_and_no_schedule_takes_no_step() -> None:
    makers, model = make_torch()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=0)
    makers.advance(None, 1.0)
    for loss in (1.0, 2.0):
        makers.advance(plateau, loss)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.05)


TABLE = torch.ones(3)
SCALE = torch.full((), 2.0)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.tables = [{"plain attribute": torch.zeros(1)}]


def test_tensors_and_modules_are_found_once_each() -> None:
    labels, criterion = torch.ones(4), torch.nn.CrossEntropyLoss(weight=torch.ones(2))

    def loss(output, scale=SCALE):
        return criterion(output, labels) * scale * TABLE.sum()

    model = Model()
    found = find_reachable(
        model,
        [partial(loss), None],
        lambda value: isinstance(value, torch.Tensor),
        lambda value: isinstance(value, torch.nn.Module),
        contents,
    )
    wanted = [
        model.fc.weight, model.fc.bias, model.tables[0]["plain attribute"],
        labels, criterion.weight, loss.__defaults__[0], TABLE,
    ]  # fmt: skip
    assert {id(tensor) for tensor in found.tensors} == set(map(id, wanted))
    assert len(found.tensors) == len(wanted)
    assert set(found.modules) == {model, model.fc, criterion}
