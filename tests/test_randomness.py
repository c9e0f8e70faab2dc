"""One stream for both frameworks: the same masks, the same order, dropout as either framework means it."""

from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.randomness import SharedRandom, epoch_order

import numpy as np
import paddle
import pytest
import torch


def test_a_mask_drops_and_scales() -> None:
    mask = SharedRandom(0, 0, 0).dropout_mask((1000, 100), 0.3)
    assert set(np.unique(mask)) == {0.0, 1 / 0.7}
    # 100,000 draws: 0.3 within five standard deviations
    assert abs((mask == 0).mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / mask.size)
    assert not SharedRandom(0, 0, 0).dropout_mask((5,), 1.0).any()


def test_a_draw_depends_on_seed_epoch_step_and_call_alone() -> None:
    def draws(*key: int) -> list[bytes]:
        random = SharedRandom(*key)
        return [random.dropout_mask((64,), 0.5).tobytes() for _ in range(2)]

    assert draws(1, 2, 3) == draws(1, 2, 3)
    different = {
        draw for key in ((1, 2, 3), (0, 2, 3), (1, 0, 3), (1, 2, 0)) for draw in draws(*key)
    }
    assert len(different) == 8


def test_an_epoch_visits_every_example_once_and_each_epoch_anew() -> None:
    orders = [epoch_order(100, 7, epoch) for epoch in range(3)]
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert orders[0] == epoch_order(100, 7, 0)


@pytest.mark.parametrize("training", [True, False])
def test_both_frameworks_drop_the_same(training: bool) -> None:
    x = np.random.default_rng(0).normal(size=(8, 16))
    torch_layer, paddle_layer = torch.nn.Dropout(0.4), paddle.nn.Dropout(0.4)
    for layer in (torch_layer, paddle_layer):
        layer.train() if training else layer.eval()
    with pt_backend.shared_dropout(SharedRandom(0, 0, 0)):
        expected = torch_layer(torch.from_numpy(x)).numpy()
    with pd_backend.shared_dropout(SharedRandom(0, 0, 0)):
        actual = paddle_layer(paddle.to_tensor(x)).numpy()
    np.testing.assert_array_equal(expected, actual)
    assert (expected == 0).any() == training


def test_the_frameworks_own_dropout_is_put_back() -> None:
    own = torch.nn.functional.dropout, paddle.nn.functional.dropout
    for backend in (pt_backend, pd_backend):
        with pytest.raises(ZeroDivisionError), backend.shared_dropout(SharedRandom(0, 0, 0)):
            _ = 1 / 0
    assert own == (torch.nn.functional.dropout, paddle.nn.functional.dropout)
