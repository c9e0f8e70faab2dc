"""Faults in loss, optimizer and schedule."""

from collections.abc import Callable
from typing import Any

from reprod_align.selftest import training
from reprod_align.selftest.plant import PlantedFault, View
from tests.selftest.observed import X, observed, tell_why_not

import paddle
import pytest
from paddle import nn
from paddle.nn import functional

NO_LABEL = paddle.to_tensor([0, 1, -100])


def labelled(output: Any) -> Any:
    return functional.cross_entropy(output, NO_LABEL)


def adamw(**settings: Any) -> Callable[[Any], Any]:
    return lambda model: paddle.optimizer.AdamW(parameters=model.parameters(), **settings)


def linear() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 2))


def made_with(view: View, fault: PlantedFault) -> Any:
    """Return an optimizer of the side with the fault in it."""
    assert fault.plant is not None and fault.in_steps
    with fault.plant(view.side) as side:
        return side.optimizer(side.model)


def test_a_loss_is_scaled_and_counts_what_it_should_ignore() -> None:
    output = paddle.to_tensor([[1.0, 2.0], [3.0, 1.0], [0.0, 1.0]])
    with observed(linear(), X, loss=labelled) as view:
        for fault, changed in (
            (training.scale_loss(view), lambda own, planted: planted == own * 3),
            (training.count_ignored_labels(view), lambda own, planted: planted != own),
        ):
            assert fault.hint == ""
            with fault.plant(view.side) as side:
                assert changed(float(labelled(output)), float(side.loss(output)))


@pytest.mark.parametrize(
    ("labels", "rows", "ignore", "found"),
    [
        ([0, 1, 1], [0, 1, 2], -100, None),  # of examples
        ([0, 1, 1], [0, 1, 2], 9, "no label is 9"),  # the loss is told of one
        ([0, 1, 1, 0, 1, 0], [0, 1, 2, 0, 1, 2], -100, "no label is -100"),  # of words, in one row
        ([0, 1], [0, 1], -100, "no label is -100"),
    ],
)
def test_labels_of_whole_examples_are_not_ignored(
    labels: list[int], rows: list[int], ignore: int, found: str | None
) -> None:
    def loss(output: Any) -> Any:
        given = output[paddle.to_tensor(rows)]
        return functional.cross_entropy(given, paddle.to_tensor(labels), ignore_index=ignore)

    with observed(linear(), X, loss=loss) as view:
        if found is None:
            why = tell_why_not(training.count_ignored_labels, view)
            assert why == "each example has one label, and none is ignored"
        else:
            fault = training.count_ignored_labels(view)
            assert fault.hint == f"{found}: give some labels that are ignored"


def test_losses_that_cannot_show_a_fault() -> None:
    with observed(linear(), X) as view:
        assert "no loss is given" in training.scale_loss(view).hint
        assert training.count_ignored_labels(view) == []
    with observed(linear(), X, loss=lambda output: output.sum()) as view:
        assert "calls no cross_entropy" in tell_why_not(training.count_ignored_labels, view)
    with observed(linear(), X[:1], loss=lambda output: output.sum()) as view:
        assert "give several" in training.scale_loss(view).hint


@pytest.mark.parametrize(("find", "kind", "attribute", "value"), [
    (training.change_optimizer_epsilon, "optimizer's epsilon 1e-08 -> 1e-06", "_epsilon", 1e-6),
    (training.change_beta2, "beta2 0.999 -> 0.98", "_beta2", 0.98),
    (training.change_decay, "", "_weight_decay", 0.5),
    (training.leave_clip_out, "", "_grad_clip", None),
])  # fmt: skip
def test_a_setting_of_the_optimizer_is_changed(
    find: Any, kind: str, attribute: str, value: float | None
) -> None:
    optimizer = adamw(weight_decay=0.25, grad_clip=nn.ClipGradByGlobalNorm(1.0))
    with observed(linear(), X, optimizer=optimizer) as view:
        fault = find(view, view.optimizer)
        assert fault.kind == kind
        assert getattr(made_with(view, fault), attribute) == value
        assert getattr(view.side.optimizer(view.side.model), attribute) != value


def test_decay_is_moved_and_a_parameter_left_out() -> None:
    with observed(linear(), X, optimizer=adamw(weight_decay=0.25)) as view:
        weight, bias = view.side.model.parameters()
        spared = made_with(view, training.decay_elsewhere(view, view.optimizer))
        assert spared._apply_decay_param_fun(weight.name)
        assert not spared._apply_decay_param_fun(bias.name)
        fault = training.leave_parameter_out(view, view.optimizer)
        assert fault.module == "0.bias"
        assert [one.name for one in made_with(view, fault)._parameter_list] == [weight.name]


def test_an_optimizer_without_a_place_for_it() -> None:
    def sgd(model: Any) -> Any:
        return paddle.optimizer.SGD(0.1, parameters=model.parameters())

    with observed(linear(), X, optimizer=sgd) as view:
        found = [tell_why_not(find, view, view.optimizer) for find in (
            training.decay_elsewhere, training.change_optimizer_epsilon, training.change_beta2,
            training.leave_clip_out, training.run_schedule_ahead)]  # fmt: skip
    assert found == [
        "the optimizer has no weight decay", "the optimizer has no epsilon",
        "the optimizer has no betas", "the optimizer does not clip",
        "the learning rate does not follow a schedule",
    ]  # fmt: skip


def test_a_schedule_is_ahead_by_one_step() -> None:
    def scheduled(step: int) -> Callable[[Any], Any]:
        return lambda model: paddle.optimizer.SGD(
            paddle.optimizer.lr.StepDecay(0.5, step, 0.5), parameters=model.parameters()
        )

    with observed(linear(), X, optimizer=scheduled(1)) as view:
        fault = training.run_schedule_ahead(view, view.optimizer)
        assert fault.hint == ""
        with fault.plant(view.side) as side:
            assert side.optimizer(side.model).get_lr() == 0.25
        assert view.side.optimizer(view.side.model).get_lr() == 0.5
    with observed(linear(), X, optimizer=scheduled(100)) as view:
        fault = training.run_schedule_ahead(view, view.optimizer)
        assert "give more steps" in fault.hint
