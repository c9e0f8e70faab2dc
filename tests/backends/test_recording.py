"""What recording needs of a framework: the same of both, and a trace of each."""

from pathlib import Path
from typing import Any

from reprod_align.backends.paddle import side as paddle_side
from reprod_align.backends.paddle import trace as paddle_trace
from reprod_align.backends.torch import side as torch_side
from reprod_align.backends.torch import trace as torch_trace
from reprod_align.errors import ReprodError
from reprod_align.traces import load_trace
from reprod_align.traces.sketch import NUMPY, distance, sketch

import numpy as np
import paddle
import pytest
import torch

ROWS = np.random.default_rng(0).standard_normal((40, 50))
TWINS = [
    (torch_side, torch_trace, torch, torch.tensor),
    (paddle_side, paddle_trace, paddle, paddle.to_tensor),
]


@pytest.mark.parametrize(("side", "ops", "framework", "make"), TWINS)
def test_a_sketch_is_that_of_the_array(side: Any, ops: Any, framework: Any, make: Any) -> None:
    own = sketch(make(ROWS), ops)
    np.testing.assert_allclose(own, sketch(ROWS), rtol=1e-9, atol=1e-9)
    changed = ROWS.copy()
    changed[3, 4] += 1.0
    assert distance(own, sketch(make(changed), ops)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize(("side", "ops", "framework", "make"), TWINS)
@pytest.mark.parametrize("axes", [(1, 0, 2), (0, 2, 1), (2, 1, 0)])
def test_a_tensor_in_another_order_has_the_sketch_of_its_elements(
    side: Any, ops: Any, framework: Any, make: Any, axes: tuple[int, ...]
) -> None:
    values = np.random.default_rng(1).standard_normal((3, 260, 140), np.float32)
    back = tuple(np.argsort(axes))
    lying = framework.permute(make(values.transpose(axes).copy()), back)
    assert not lying.is_contiguous() and np.array_equal(ops.array(lying), values)
    np.testing.assert_array_equal(sketch(lying, ops), sketch(values))


@pytest.mark.parametrize(("side", "ops", "framework", "make"), TWINS)
def test_the_frameworks_own_sums_are_numpys(side: Any, ops: Any, framework: Any, make: Any) -> None:
    flat = ops.on_device(make(ROWS))
    own, expected = ops.measure(flat, 7, 49), NUMPY.measure(ROWS.reshape(-1), 7, 49)
    for one, other in zip(own, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    narrow = ops.on_device(make(ROWS.astype(np.float16)))
    assert str(narrow.dtype).endswith("float32")
    pair = ops.on_device(make(np.array([1 + 2j])))
    assert ops.array(pair).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("side", "ops", "framework", "make"), TWINS)
def test_versions_leaves_and_gradients(side: Any, ops: Any, framework: Any, make: Any) -> None:
    layer = framework.nn.Linear(3, 2)
    tensor = make(ROWS)
    before = side.count_changes(tensor)
    tensor[0] = 0.0
    assert side.count_changes(tensor) != before
    assert ops.is_leaf(layer.weight) and not ops.is_leaf(layer.weight * 2)
    assert ops.gradient(layer.weight) is None
    (layer.weight * 2).sum().backward()
    assert (ops.array(ops.gradient(layer.weight)) == 2).all()
    assert ops.transposed_parameters(layer) == ({"weight"} if framework is paddle else set())


@pytest.mark.parametrize(("side", "ops", "framework", "make"), TWINS)
def test_a_trace_is_written(side: Any, ops: Any, framework: Any, make: Any, tmp_path: Path) -> None:
    layer, path = framework.nn.Linear(3, 2), tmp_path / "trace"
    with ops.record_trace(layer, path, backward=False):
        layer(framework.ones([4, 3]))
    tensors = load_trace(path).tensors
    assert [(tensor.phase, tensor.shape) for tensor in tensors] == [
        ("input", (4, 3)), ("output", (4, 2)),
    ]  # fmt: skip
    with pytest.raises(ReprodError, match="nothing was recorded"):
        with ops.record_trace(layer, path):
            pass
