"""What a port computes, run directly in float64: the truth about a mutant does not depend on `align`."""

import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.mutants.kinds import When
from benchmarks.mutants.subjects import Subject
from examples.zoo.pair import Batch
from reprod_align.pair import paddle_side

import numpy as np
import paddle
import torch

Arrays = Mapping[str, np.ndarray]
_STATISTICS = ("_mean", "_variance")
_CHANGED = 1e-9  # relative to the largest value
_LEAST = 1e-4  # of the median of all largest values: a gradient below is zero but for rounding


def work_out(subject: Subject, path: Path, batch: Batch | None = None) -> Arrays:
    """Return outputs and gradients of the port at `path`, in eval and in train mode, by name.

    batch: in place of the pair's own.

    Its weights are random numbers that follow from their names. An output of a shape that PyTorch's
    model does not return is left out.
    """
    reference, model, inputs = subject.make(subject.load(path))
    inputs = inputs if batch is None else batch
    shapes = _shapes_of_reference(reference, inputs)
    with paddle_side(model).working("float64", False):
        _fill(model)
        _load(model, reference)
        return dict(_run_both(model, inputs, shapes))


def differ(expected: Arrays, actual: Arrays) -> bool:
    """Tell whether any number is another one."""
    if expected.keys() != actual.keys():
        return True
    sizes = [np.abs(array[np.isfinite(array)]).max(initial=0.0) for array in expected.values()]
    least = _LEAST * float(np.median(sizes))
    return any(_differs(expected[name], actual[name], least) for name in expected)


def collect_lines(subject: Subject, path: Path) -> dict[When, frozenset[int]]:
    """Return the lines of the port at `path` that run while it is made, while it is called, in either."""
    module = subject.load(path)
    built: set[int] = set()
    called: set[int] = set()
    with _watching(path, built):
        _, model, inputs = subject.make(module)
    with _watching(path, called):
        for training in (False, True):
            call(model, inputs, training, "float32")
    return {
        "built": frozenset(built),
        "called": frozenset(called),
        "any": frozenset(built | called),
    }


@contextmanager
def _watching(path: Path, lines: set[int]) -> Iterator[None]:
    """Collect the lines of a file that run, those of the module itself left out."""

    def watch(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != str(path) or frame.f_code.co_name == "<module>":
            return None
        lines.add(frame.f_lineno)
        return watch

    sys.settrace(watch)
    try:
        yield
    finally:
        sys.settrace(None)


def _fill(model: Any) -> None:
    """Give parameters and running statistics numbers that follow from their names."""
    statistics = [(name, it) for name, it in model.named_buffers() if name.endswith(_STATISTICS)]
    for name, tensor in [*model.named_parameters(), *statistics]:
        random = np.random.default_rng(zlib.crc32(name.encode()))
        drawn = random.normal(size=tensor.shape) * 0.2
        tensor.set_value(np.abs(drawn) + 0.5 if name.endswith("variance") else drawn)


def _load(model: Any, reference: Any) -> None:
    """Give the port the reference's tables of the same name, as loading weights does.

    A table that is wrong in the port and loaded over is no fault; one that is not loaded is.
    """
    held, tables = model.state_dict(), dict(reference.named_buffers())
    for name in held.keys() & tables.keys() & reference.state_dict().keys():
        if not name.endswith(_STATISTICS) and list(held[name].shape) == list(tables[name].shape):
            held[name].set_value(tables[name].numpy().astype(str(held[name].dtype).split(".")[-1]))


def _shapes_of_reference(model: Any, inputs: Any) -> frozenset[tuple[int, ...]]:
    """Return the shapes of the outputs of PyTorch's model."""

    def convert(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array.astype("float32") if array.dtype.kind == "f" else array)

    with torch.no_grad():
        if isinstance(inputs, dict):
            made = model(**{name: convert(array) for name, array in inputs.items()})
        else:
            made = model(*map(convert, inputs))
    return frozenset(tuple(tensor.shape) for tensor in _tensors(made))


def _run_both(
    model: Any, inputs: Any, shapes: frozenset[tuple[int, ...]]
) -> Iterator[tuple[str, np.ndarray]]:
    for training in (False, True):
        mode = "train" if training else "eval"
        objective = 0.0
        made = _tensors(call(model, inputs, training, "float64"))
        for at, tensor in enumerate(it for it in made if tuple(it.shape) in shapes):
            yield f"{mode} output {at}", np.asarray(tensor.numpy(), np.float64)
            if "float" in str(tensor.dtype) and not tensor.stop_gradient:
                weights = np.cos(np.arange(tensor.size, dtype=np.float64)).reshape(tensor.shape)
                objective = objective + (tensor * paddle.to_tensor(weights)).sum()
        model.clear_gradients()
        objective.backward()
        for name, parameter in model.named_parameters():
            if parameter.grad is not None:
                yield f"{mode} gradient of {name}", np.asarray(parameter.grad.numpy(), np.float64)


def call(model: Any, inputs: Any, training: bool, dtype: str) -> Any:
    """Call the port on the pair's inputs in one mode."""
    (model.train if training else model.eval)()
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.layer.rnn.RNNBase):
            layer.train()  # its kernel has no backward pass in eval mode
    paddle.seed(0)
    np.random.seed(0)
    if isinstance(inputs, dict):
        return model(**{name: _tensor(array, dtype) for name, array in inputs.items()})
    return model(*[_tensor(array, dtype) for array in inputs])


def _tensor(array: np.ndarray, dtype: str) -> Any:
    return paddle.to_tensor(array.astype(dtype) if array.dtype.kind == "f" else array)


def _tensors(value: Any) -> Iterator[Any]:
    """Yield the tensors of an output; a tuple of one is as good as the one."""
    if isinstance(value, paddle.Tensor | torch.Tensor):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(part)


def _differs(expected: np.ndarray, actual: np.ndarray, least: float) -> bool:
    if expected.shape != actual.shape or (np.isfinite(expected) != np.isfinite(actual)).any():
        return True
    sure = np.isfinite(expected)
    apart = np.abs(expected[sure] - actual[sure]).max(initial=0.0)
    return bool(apart > _CHANGED * max(np.abs(expected[sure]).max(initial=0.0), least))
