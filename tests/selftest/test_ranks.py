"""What a port on ranks offers to plant in, read in one process."""

from contextlib import ExitStack
from typing import Any

from reprod_align.selftest.plant import NoPlace
from reprod_align.selftest.ranks import (
    _OWN_STREAM,
    PlantedPort,
    list_rank_faults,
    plant_on_rank,
)

import paddle
import pytest
from paddle import nn
from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker

KINDS = list_rank_faults(["tp", "dp"])


def make_port(stack: ExitStack, model: nn.Layer, **functions: Any) -> PlantedPort:
    given = dict.fromkeys(("paddle_loss", "paddle_optimizer", "paddle_scheduler")) | functions
    return PlantedPort(model, given, 1, 2, 0, 1, None, stack)


def test_the_axes_choose_the_faults() -> None:
    assert set(list_rank_faults(["dp"])) < set(KINDS)
    assert all("replica" in kind or "one rank" in kind for kind in list_rank_faults(["dp"]))
    assert "row layer not summed" in list_rank_faults(["tp", "sp"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_port_without_a_place_says_why(kind: str) -> None:
    with ExitStack() as stack, pytest.raises(NoPlace, match=r"\w"):
        plant_on_rank(kind, make_port(stack, nn.Sequential(nn.Tanh())))


def test_a_gradient_is_changed_at_the_parameter_that_is_named() -> None:
    with ExitStack() as stack:
        port = make_port(stack, nn.Linear(2, 3))
        assert plant_on_rank("gradient missing on a rank", port) == "bias"
    port.made(paddle.ones([1, 2])).sum().backward()
    assert not port.made.bias.grad.any() and port.made.weight.grad.all()


def test_the_last_rank_alone_has_another_loss_and_another_rate() -> None:
    with ExitStack() as stack:
        port = make_port(
            stack,
            nn.Linear(2, 3),
            paddle_loss=lambda output: 2.0,
            paddle_optimizer=lambda model: paddle.optimizer.SGD(0.5, model.parameters()),
        )
        assert plant_on_rank("loss of one rank apart", port) == ""
        assert plant_on_rank("learning rate of one rank", port) == ""
    assert port.functions["paddle_loss"](None) == pytest.approx(2.02)
    assert port.functions["paddle_optimizer"](port.made).get_lr() == pytest.approx(0.55)


def test_masks_are_repeated_where_the_stream_of_parts_is_asked_for() -> None:
    tracker = get_rng_state_tracker()
    own = tracker.rng_state
    with ExitStack() as stack:
        port = make_port(stack, nn.Sequential(nn.Dropout(0.5)))
        assert plant_on_rank("dropout repeated on parts", port) == ""
        port.made(paddle.ones([4]))
        assert not port.acted
        with tracker.rng_state(_OWN_STREAM):
            port.made(paddle.ones([4]))
        assert port.acted
    assert tracker.rng_state == own


def test_masks_are_drawn_apart_outside_the_stream_of_parts() -> None:
    tracker = get_rng_state_tracker()
    if _OWN_STREAM not in tracker.states_:
        tracker.add(_OWN_STREAM, 7)
    with ExitStack() as stack:
        port = make_port(stack, nn.Sequential(nn.Dropout(0.5)))
        assert plant_on_rank("dropout of whole tensors drawn apart", port) == ""
        with tracker.rng_state(_OWN_STREAM):
            port.made(paddle.ones([4]))
        assert not port.acted  # these are drawn apart as they should be
        port.made(paddle.ones([4]))
        assert port.acted
