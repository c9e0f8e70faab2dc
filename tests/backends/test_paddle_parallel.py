"""What a rank asks of Paddle, and the stand-ins, in one process."""

import socket
from types import SimpleNamespace
from typing import Any

from reprod_align.backends.paddle import parallel

import numpy as np
import paddle
import pytest
from paddle import nn
from paddle.base import core


def test_how_tensors_lie_is_read_from_their_marks() -> None:
    layer = nn.Linear(3, 4)
    layer.weight.is_distributed, layer.weight.split_axis = True, 1
    shards = parallel.read_shards(layer)
    assert shards["weight"] == parallel.Shard(1, "cut")
    assert shards["bias"] == parallel.Shard(None, "replicated")
    assert parallel.read_borders(layer) == {}
    assert parallel.unwrap(layer) is layer and not parallel.reduces_itself(layer)


def test_streams_in_the_same_state_have_the_same_print() -> None:
    state = paddle.get_rng_state()
    try:
        paddle.seed(1)
        first = parallel.fingerprint_stream()
        paddle.seed(2)
        assert parallel.fingerprint_stream() != first
        paddle.seed(1)
        assert parallel.fingerprint_stream() == first
    finally:
        paddle.set_rng_state(state)


def test_the_lookup_leaves_no_element_of_a_gradient_unwritten() -> None:
    table = paddle.ones([64, 8], "float64")
    table.stop_gradient = False
    ids = paddle.to_tensor(np.array([34, 35, 99]))
    rows = parallel._c_lookup_table(table, ids, start_index=32)
    rows.sum().backward()
    expected = np.zeros((64, 8))
    expected[2:4] = 1
    np.testing.assert_array_equal(table.grad.numpy(), expected)
    np.testing.assert_array_equal(rows.numpy()[2], np.zeros(8))


def test_the_loss_of_one_rank_is_that_of_paddle() -> None:
    group = SimpleNamespace(nranks=1, ranks=[0])
    logits, label = paddle.randn([5, 7]).astype("float64"), paddle.to_tensor([0, 6, 3, -100, 2])
    loss = parallel._c_softmax_with_cross_entropy(logits, label, group)
    expected = nn.functional.cross_entropy(logits, label, reduction="none")
    np.testing.assert_allclose(loss.squeeze(-1).numpy(), expected.numpy(), atol=1e-14)


def test_each_group_meets_at_a_store_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one store the groups' ranks would write under the same keys, "0" and "1"."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = core.TCPStore("127.0.0.1", port, True, 1, 20)
    monkeypatch.setattr(parallel, "_make_group", lambda backend, store, *given: store)

    def make(rank: int, name: str) -> Any:
        return parallel._make_group_alone("gloo", common, rank, 2, name, None)

    first, second = ([make(rank, name) for rank in (0, 1)] for name in ("first", "second"))
    first[0].set("0", b"of the first")
    second[0].set("0", b"of the second")
    assert bytes(first[1].get("0")) == b"of the first"
    assert bytes(second[1].get("0")) == b"of the second"
