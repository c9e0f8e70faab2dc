"""The calls of Paddle that `LocalSide` makes. `backends.torch.side` holds the same with PyTorch's."""

import ctypes
import os
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from inspect import signature
from typing import Any

from reprod_align.backends import note_arguments, note_construction
from reprod_align.backends.paddle import private
from reprod_align.backends.paddle.calls import float32_requests as float32_requests
from reprod_align.backends.paddle.calls import intercept_calls as intercept_calls
from reprod_align.backends.paddle.kernels import exact_kernels
from reprod_align.backends.paddle.private import STATISTICS, is_initialized
from reprod_align.backends.paddle.private import contents as contents
from reprod_align.backends.paddle.private import is_persistent as is_persistent
from reprod_align.base.blocks import Array

import numpy as np
import paddle
from paddle import nn
from paddle.jit.dy2static.logging_utils import TranslatorLogger
from paddle.jit.dy2static.program_translator import ProgramTranslator

Tensor, Module = paddle.Tensor, nn.Layer

PACKAGES = (os.path.dirname(paddle.__file__),)
"""whose files are not the user's"""
MODELS = (os.path.join(PACKAGES[0], "vision"),)
"""but these are models: judged as a user's are"""

NAME = "Paddle"

_REFERENCES = 2  # a local variable, and the argument of `getrefcount`


def is_tensor(value: object) -> bool:
    """Tell whether `value` is a tensor of this framework."""
    return isinstance(value, paddle.Tensor)


def is_module(value: object) -> bool:
    """Tell whether `value` is a module of this framework."""
    return isinstance(value, nn.Layer)


def list_missed() -> list[str]:
    """Return a line for each private name that a run did without."""
    return [*private.NAMES.missed]


def find_obstacle(model: nn.Layer) -> str:
    """Return why the model cannot be compared, "" if it can."""
    if not paddle.in_dynamic_mode():
        return "cannot be run in static mode: call paddle.disable_static()"
    try:
        layers = list(model.named_sublayers(include_self=True))
    except RecursionError:
        return "holds itself among its own sublayers"
    for name, layer in layers:
        at = f" at {name}" if name else ""
        if isinstance(layer, paddle.jit.TranslatedLayer):
            return f"is compiled (paddle.jit){at}: give the plain model"
        if isinstance(layer, nn.Embedding) and private.is_sparse(layer):
            return f"has a sparse embedding{at}: give sparse=False, the gradient is the same"
    return ""


def modules(model: nn.Layer) -> Iterator[tuple[str, nn.Layer]]:
    """Yield every module once, under its first name, parents before their children.

    The cells inside paddle.nn.LSTM, GRU and SimpleRNN only hold its weights under second names; those
    of an LSTM with proj_size hold them under the right ones.
    """
    hidden: tuple[str, ...] = ()
    for name, layer in model.named_sublayers(include_self=True):
        if name.startswith(hidden) and hidden:
            continue
        yield name, layer
        if isinstance(layer, (nn.LSTM, nn.GRU, nn.SimpleRNN)) and not _is_projected(layer):
            hidden = (*hidden, f"{name}." if name else "")


def own_tensors(module: nn.Layer) -> Iterator[tuple[str, paddle.Tensor, bool]]:
    """Yield name, tensor and whether it is a parameter, of what the module itself holds."""
    parameters, buffers, _ = contents(module)
    for name, parameter in parameters.items() if not _is_projected(module) else ():
        if parameter is not None:
            yield name, parameter, name not in STATISTICS
    for name, buffer in buffers.items():
        if buffer is not None and has_values(buffer):
            yield name, buffer, False


def _is_projected(module: nn.Layer) -> bool:
    """Tell whether an LSTM has a projection: it counts four tensors a cell, though there are five."""
    return isinstance(module, nn.LSTM) and getattr(module, "proj_size", 0) > 0


def saved_tensors(model: nn.Layer) -> Iterator[tuple[str, paddle.Tensor]]:
    """Yield the tensors of the model's state dict, themselves, by the names that it gives them."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        if is_tensor(tensor):
            yield name, tensor


def has_values(tensor: paddle.Tensor) -> bool:
    """Tell whether the tensor has memory of its own: what an LSTM keeps for its dropout has none on a CPU.

    A sparse tensor has that of its parts, which cannot be exchanged: it stays what it is.
    """
    return bool(is_initialized(tensor)) and not tensor.is_sparse() and tensor.size > 0


def view(tensor: paddle.Tensor) -> Array:
    """Return the tensor's own memory if numpy can read it; bfloat16, which it lacks, as float32.

    It must be copied before anything can write to the tensor.
    """
    memory = _read_memory(tensor)
    if memory is not None:
        return memory
    dense = tensor.detach()
    seen: Array = (dense.astype("float32") if dense.dtype == paddle.bfloat16 else dense).numpy()
    return seen


def _read_memory(tensor: paddle.Tensor) -> Array | None:
    """Return the tensor's own memory, None if numpy cannot read it."""
    readable = tensor.place.is_cpu_place() and hasattr(tensor, "__dlpack__")
    return np.from_dlpack(tensor.detach()) if readable and tensor.dtype != paddle.bfloat16 else None


def array(tensor: paddle.Tensor) -> Array:
    """Return a copy of the tensor; bfloat16, which numpy lacks, as float32."""
    return np.array(view(tensor))


def constant(values: Array, like: paddle.Tensor | None = None) -> paddle.Tensor:
    """Return the values as a tensor, of the dtype and on the device of `like`."""
    tensor = paddle.to_tensor(values, place=None if like is None else like.place)
    return tensor if like is None or tensor.dtype == like.dtype else tensor.astype(like.dtype)


def place(tensor: paddle.Tensor, model: nn.Layer) -> paddle.Tensor:
    """Return the tensor on the model's device."""
    first = next(iter(model.parameters()), None)
    if first is None or str(tensor.place) == str(first.place):
        return tensor  # Paddle 2.6 refuses to move it there
    return tensor.to(first.place)


def carries_gradient(tensor: paddle.Tensor) -> bool:
    """Tell whether a gradient can flow back through the tensor."""
    return not tensor.stop_gradient


def gradient_node(tensor: paddle.Tensor) -> Any:
    """Return the operator that made the tensor, or what gathers a leaf's gradient; None without one."""
    if tensor.stop_gradient:
        return None
    node = tensor.grad_fn
    if _keeps_nodes():  # else every activation would stay in memory
        ctypes.pythonapi.Py_DecRef(ctypes.py_object(node))
    return node


@cache
def _keeps_nodes() -> bool:
    """Tell whether `Tensor.grad_fn` keeps a reference that nobody gives back, as Paddle up to 3.3 does."""
    one = paddle.ones([1])
    one.stop_gradient = False
    made = one * 2
    node = made.grad_fn
    return sys.getrefcount(node) > _REFERENCES


def node_key(node: Any) -> int:
    """Return a key that no other node has; a leaf has the same one in every pass."""
    return int(node.node_ptr())


def node_name(node: Any) -> str:
    """Return the operator's name in small letters; "" for a function of the user's own."""
    name = node.name()
    return "" if name.startswith("GradNodePyLayer") else name.removesuffix("GradNode").lower()


def node_parents(node: Any) -> list[tuple[Any, int]]:
    """Return the nodes to which a node hands gradients on; Paddle does not number its outputs."""
    return [(parent, 0) for parent in node.next_functions if parent is not None]


def is_leaf(node: Any) -> bool:
    """Tell whether a node gathers the gradient of a leaf."""
    return bool(node.name() == "GradNodeAccumulation")


def pin(tensor: paddle.Tensor, values: paddle.Tensor) -> paddle.Tensor:
    """Return `values`, with the gradient going to `tensor` as if nothing had been replaced."""
    if tensor.stop_gradient:
        return values
    nothing = tensor - tensor.detach()
    finite = paddle.isfinite(nothing)
    if not finite.all():  # a NaN must not be passed on
        nothing = paddle.where(finite, nothing, paddle.zeros_like(nothing))
    return values + nothing


def make_differentiable(tensor: paddle.Tensor) -> paddle.Tensor:
    """Return an equal tensor from which on gradients are kept."""
    kept = tensor.detach()
    kept.stop_gradient = False
    return kept


def count_changes(tensor: paddle.Tensor) -> int:
    """Return how often a tensor was changed in place."""
    return int(tensor.inplace_version)


def overwrite(tensor: paddle.Tensor, values: paddle.Tensor) -> None:
    """Give a tensor other values in place; its gradient flows to these from there on."""
    paddle.assign(values, tensor)


def on_gradient(tensor: paddle.Tensor, hook: Callable[[Any], Any]) -> Any:
    """Call `hook` with the tensor's gradient; what it returns, if anything, takes its place.

    Returns the handle, None if the tensor takes no gradient.
    """
    return tensor.register_hook(hook) if not tensor.stop_gradient else None


def note_hooks() -> AbstractContextManager[list[Any]]:
    """Yield a list of the hooks that are set on gradients in the block."""
    return note_arguments(paddle.Tensor, "register_hook")


def before_call(module: nn.Layer, hook: Callable[..., Any]) -> Any:
    """Call hook(args, kwargs) before each forward; it returns the new pair. Returns the handle."""
    if not _HOOKS_TAKE_KEYWORDS:
        return _ForwardHook(module, hook)
    return module.register_forward_pre_hook(
        lambda module, args, kwargs: hook(args, kwargs), with_kwargs=True
    )


_HOOKS_TAKE_KEYWORDS = "with_kwargs" in signature(nn.Layer.register_forward_pre_hook).parameters
"""Paddle 3.0 and later"""


class _ForwardHook:
    """Stands for a hook that is given keywords, in Paddle 2.6: the layer's own `forward` is wrapped.

    A direct call of `layer.forward` is seen as a call of the layer.
    """

    def __init__(self, module: nn.Layer, hook: Callable[..., Any]) -> None:
        self._module, own = module, module.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            changed = hook(args, kwargs)
            args, kwargs = (args, kwargs) if changed is None else changed
            return own(*args, **kwargs)

        module.__dict__["forward"] = forward

    def remove(self) -> None:
        """Give the layer its own `forward` back."""
        self._module.__dict__.pop("forward", None)


def after_call(module: nn.Layer, hook: Callable[..., Any]) -> Any:
    """Call hook(output) after each forward; it returns the new output. Returns the handle."""
    return module.register_forward_post_hook(lambda module, args, output: hook(output))


def weighted_sum(tensors: Iterable[paddle.Tensor], weights: Iterable[Array]) -> paddle.Tensor:
    """Return the sum of the elements, each times its weight: a scalar."""
    parts = [
        (tensor * constant(weight, tensor)).sum()
        for tensor, weight in zip(tensors, weights, strict=True)
    ]
    return paddle.stack(parts).sum()


def gradient(parameter: paddle.Tensor) -> Array | None:
    """Return the parameter's gradient as `view` does, None if it has none."""
    kept = _grad(parameter)
    if kept is None:
        return None
    return view(kept) if _loses_gradients() else array(kept)  # clearing empties the gradient itself


def set_gradient(parameter: paddle.Tensor, values: Array | None) -> None:
    """Give the parameter this gradient."""
    _set_grad(parameter, None if values is None else constant(values, parameter))


def set_values(tensor: paddle.Tensor, values: Array) -> None:
    """Give the tensor these values in its own dtype."""
    memory = _read_memory(tensor)
    if memory is not None and memory.flags.writeable and memory.shape == values.shape:
        with np.errstate(all="ignore"):
            # cast on the way: Paddle's own copies twice
            np.copyto(memory, values, casting="unsafe")
        return
    with paddle.no_grad():
        tensor.set_value(constant(values, tensor))


def set_mode(model: nn.Layer, training: bool) -> None:
    """Put the model into train or eval mode."""
    if training:
        model.train()
    else:
        model.eval()


def note_makers(note: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call `note` with "optimizer" or "scheduler" whenever one is made in the block."""
    return note_construction(
        {"optimizer": paddle.optimizer.Optimizer, "scheduler": paddle.optimizer.lr.LRScheduler},
        note,
    )


def learning_rates(optimizer: Any) -> list[float]:
    """Return the learning rate of each parameter group."""
    return [float(optimizer.get_lr())]


def set_rates(optimizer: Any, rates: Sequence[float]) -> None:
    """Let the next step learn at the first of these rates: Paddle's groups hold factors of it."""
    scheduler = own_scheduler(optimizer)
    if scheduler is None:
        optimizer.set_lr(rates[0])
    else:
        scheduler.last_lr = rates[0]


def attach(scheduler: Any, optimizer: Any) -> bool:
    """Give the optimizer its scheduler; True if it was missing. Paddle's are made apart."""
    if own_scheduler(optimizer) is not None:
        return False
    if not isinstance(scheduler, paddle.optimizer.lr.LRScheduler):
        return False
    optimizer.set_lr_scheduler(scheduler)
    return True


def own_scheduler(optimizer: Any) -> Any:
    """Return the scheduler that the optimizer itself holds, None if its rate is a number."""
    rate = private.find_rate(optimizer)
    return rate if isinstance(rate, paddle.optimizer.lr.LRScheduler) else None


@contextmanager
def change_precision(
    tensors: Iterable[paddle.Tensor], dtype: str | None, resting: Container[int] = ()
) -> Iterator[dict[int, paddle.Tensor]]:
    """Work in `dtype`: the floats of `tensors` and the default; afterwards all is as before.

    The tensors keep their identity, so that ties, optimizers and closures hold. dtype None keeps
    each tensor's own dtype and still protects its values. resting: ids of tensors that are left on
    the memory in which they came. Yields what they hold, by their ids.
    """
    filled = [tensor for tensor in tensors if has_values(tensor)]
    kept = [(tensor, _make_twin(tensor), _copy(_grad(tensor))) for tensor in filled]
    default = paddle.get_default_dtype()
    try:
        if dtype is not None:
            paddle.set_default_dtype(dtype)
        for tensor, _, _ in kept:
            _set_grad(tensor, None)
            if id(tensor) not in resting:
                hold(tensor, convert(tensor, dtype))
        with exact_kernels():
            yield {id(tensor): data for tensor, data, _ in kept}
    finally:
        paddle.set_default_dtype(default)
        for tensor, data, grad in kept:
            _set_grad(tensor, None)
            hold(tensor, data)
            _set_grad(tensor, grad)


def convert(data: paddle.Tensor, dtype: str | None) -> paddle.Tensor:
    """Return a copy of `data`: floats, real or complex, in the precision of `dtype`."""
    converted = data.detach().astype(_choose_dtype(data, dtype))
    return converted.clone() if converted.dtype == data.dtype else converted


def make_empty(data: paddle.Tensor, dtype: str | None) -> paddle.Tensor:
    """Return what `convert` returns, with any values."""
    return paddle.empty_like(data, dtype=_choose_dtype(data, dtype))


def _choose_dtype(data: paddle.Tensor, dtype: str | None) -> Any:
    if dtype is None or not (data.is_floating_point() or data.is_complex()):
        return data.dtype
    names = {"float64": "complex128", "float32": "complex64"}
    return names[dtype] if data.is_complex() else dtype


def _make_twin(tensor: paddle.Tensor) -> paddle.Tensor:
    """Return a second tensor on the same memory: it keeps the values while `tensor` leaves them."""
    twin = paddle.empty([], dtype=tensor.dtype)
    hold(twin, tensor)
    return twin


def _grad(tensor: paddle.Tensor) -> paddle.Tensor | None:
    """Return the tensor's gradient; Paddle can't be asked for that of a tensor that takes none."""
    return tensor.grad if _takes_gradient(tensor) else None


def _takes_gradient(tensor: paddle.Tensor) -> bool:
    """Tell whether a gradient is kept: not of what is computed, as weight_norm's weight is."""
    return not tensor.stop_gradient and bool(tensor.is_leaf)


def _set_grad(tensor: paddle.Tensor, grad: paddle.Tensor | None) -> None:
    if not _takes_gradient(tensor):
        return
    if grad is None and not _loses_gradients():
        tensor.clear_gradient(set_to_zero=False)
    else:
        try:
            tensor.grad = grad
        except RuntimeError:  # Paddle 2.6 keeps an emptied gradient of another dtype
            hold(private.find_gradient(tensor), grad)


@cache
def _loses_gradients() -> bool:
    """Tell whether `tensor.grad = None` is allowed: before Paddle 3.3 it raises."""
    tensor = paddle.zeros([])
    tensor.stop_gradient = False
    try:
        tensor.grad = None
    except ValueError:
        return False
    return True


def _copy(grad: paddle.Tensor | None) -> paddle.Tensor | None:
    """Return a copy: Paddle empties the gradient itself when the parameter's is cleared."""
    return None if grad is None else grad.detach().clone()


def hold(tensor: paddle.Tensor, data: paddle.Tensor) -> None:
    """Let the tensor use the memory of `data`; it must have no gradient now."""
    private.share_memory(tensor, data)


def use_one_thread() -> None:
    """Compute in this thread alone: a copy of a process has none of the other threads."""
    paddle.base.core.set_num_threads(1)


def let_gradients(flow: bool) -> AbstractContextManager[Any]:
    """Return the block in which gradients flow, or in which none can, whatever was in force before."""
    return paddle.set_grad_enabled(flow)  # type: ignore[no-any-return]


def can_gradients_flow() -> bool:
    """Tell whether gradients flow now."""
    return bool(paddle.is_grad_enabled())


@contextmanager
def preserve_state() -> Iterator[None]:
    """Give the generators, the gradient switch and `to_static` back as they were."""
    state, translator = paddle.get_rng_state(), ProgramTranslator()
    static, verbosity = translator.enable_to_static, TranslatorLogger().verbosity_level
    gpus = paddle.get_cuda_rng_state() if paddle.is_compiled_with_cuda() else []
    try:
        TranslatorLogger().verbosity_level = -1  # each call of a decorated one would warn
        paddle.jit.enable_to_static(False)  # a program is made for one dtype, and hides its layers
        with paddle.enable_grad():
            yield
    finally:
        paddle.jit.enable_to_static(static)
        TranslatorLogger().verbosity_level = verbosity
        paddle.set_rng_state(state)
        if gpus:
            paddle.set_cuda_rng_state(gpus)
