"""The calls of PyTorch that `LocalSide` makes. `backends.paddle.side` holds the same with Paddle's."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from reprod_align.backends import note_arguments, note_construction
from reprod_align.backends.torch import private
from reprod_align.backends.torch.calls import float32_requests as float32_requests
from reprod_align.backends.torch.calls import intercept_calls as intercept_calls
from reprod_align.backends.torch.kernels import mended_kernels as mended_kernels
from reprod_align.backends.torch.private import contents as contents
from reprod_align.backends.torch.private import is_persistent as is_persistent
from reprod_align.backends.versions import look_up
from reprod_align.base.blocks import Array

import numpy as np
import torch
from torch import nn
from torch.autograd.graph import get_gradient_edge

Tensor, Module = torch.Tensor, nn.Module

PACKAGES = (os.path.dirname(torch.__file__),)
"""whose files are not the user's"""
MODELS = ()
"""but these are models: judged as a user's are (torchvision is a package of its own)"""

NAME = "PyTorch"


def is_tensor(value: object) -> bool:
    """Tell whether `value` is a tensor of this framework."""
    return isinstance(value, torch.Tensor)


def is_module(value: object) -> bool:
    """Tell whether `value` is a module of this framework."""
    return isinstance(value, nn.Module)


def list_missed() -> list[str]:
    """Return a line for each private name that a run did without."""
    return [*private.NAMES.missed]


def find_obstacle(model: nn.Module) -> str:
    """Return why the model cannot be compared, "" if it can."""
    for name, module in model.named_modules():
        at = f" at {name}" if name else ""
        if isinstance(module, torch.jit.ScriptModule):
            return f"is compiled (torch.jit){at}: give the plain model"
        for role, tensor, _ in own_tensors(module):
            if isinstance(tensor, nn.parameter.UninitializedTensorMixin):
                return f"has a {role} of no shape yet{at}: run the model once before"
            if tensor.is_meta:
                return f"has a {role} without values{at} (device meta): load its weights before"
    return ""


def modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield every module once, under its first name, parents before their children."""
    yield from model.named_modules()


def own_tensors(module: nn.Module) -> Iterator[tuple[str, torch.Tensor, bool]]:
    """Yield name, tensor and whether it is a parameter, of what the module itself holds."""
    parameters, buffers, _ = contents(module)
    for name, parameter in parameters.items():
        if parameter is not None:
            yield name, parameter, True
    for name, buffer in buffers.items():
        if buffer is not None:
            yield name, buffer, False


def saved_tensors(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of the model's state dict, themselves, by the names that it gives them."""
    for name, tensor in model.state_dict(keep_vars=True).items():
        if is_tensor(tensor):
            yield name, tensor


def has_values(tensor: torch.Tensor) -> bool:
    """Tell whether the tensor has memory: one that was expanded from nothing has none."""
    return not tensor.is_meta and (tensor.numel() < 2 or any(tensor.stride()))


def view(tensor: torch.Tensor) -> Array:
    """Return the tensor's own memory if numpy can read it; bfloat16, which it lacks, as float32.

    It must be copied before anything can write to the tensor.
    """
    dense = tensor.detach().resolve_conj().resolve_neg()
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    wide = dense.float() if dense.dtype == torch.bfloat16 else dense
    seen: Array = wide.cpu().numpy()
    return seen


def array(tensor: torch.Tensor) -> Array:
    """Return a copy of the tensor; bfloat16, which numpy lacks, as float32."""
    return np.array(view(tensor))


def constant(values: Array, like: torch.Tensor | None = None) -> torch.Tensor:
    """Return the values as a tensor, of the dtype and on the device of `like`."""
    tensor = torch.from_numpy(np.array(values))
    return tensor if like is None else tensor.to(like.device, like.dtype)


def place(tensor: torch.Tensor, model: nn.Module) -> torch.Tensor:
    """Return the tensor on the model's device."""
    first = next(model.parameters(), None)
    return tensor if first is None else tensor.to(first.device)


def carries_gradient(tensor: torch.Tensor) -> bool:
    """Tell whether a gradient can flow back through the tensor."""
    return bool(tensor.requires_grad)


def gradient_node(tensor: torch.Tensor) -> Any:
    """Return the operator that made the tensor, or what gathers a leaf's gradient; None without one."""
    return get_gradient_edge(tensor).node if tensor.requires_grad else None


def node_key(node: Any) -> int:
    """Return a key that no other node has; a leaf has the same one in every pass."""
    return id(node.variable) if is_leaf(node) else id(node)


def node_name(node: Any) -> str:
    """Return the operator's name in small letters; "" for a function of the user's own."""
    own = isinstance(node, torch.autograd.function.BackwardCFunction)
    return "" if own else re.sub(r"backward\d*$", "", node.name().lower())


def node_parents(node: Any) -> list[tuple[Any, int]]:
    """Return the nodes to which a node hands gradients on, each with the number of its output."""
    return [(parent, number) for parent, number in node.next_functions if parent is not None]


def is_leaf(node: Any) -> bool:
    """Tell whether a node gathers the gradient of a leaf."""
    return hasattr(node, "variable")


def pin(tensor: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return `values`, with the gradient going to `tensor` as if nothing had been replaced."""
    if not tensor.requires_grad:
        return values
    nothing = tensor - tensor.detach()
    finite = torch.isfinite(nothing)
    if not finite.all():  # a NaN must not be passed on
        nothing = torch.where(finite, nothing, torch.zeros_like(nothing))
    return values + nothing


def make_differentiable(tensor: torch.Tensor) -> torch.Tensor:
    """Return an equal tensor from which on gradients are kept."""
    return tensor.detach().requires_grad_(True)


def count_changes(tensor: torch.Tensor) -> int:
    """Return how often a tensor was changed in place; 0 in inference mode, which does not count."""
    return 0 if tensor.is_inference() else int(private.count_changes(tensor))


def overwrite(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Give a tensor other values in place; its gradient flows to these from there on."""
    tensor.copy_(values)


def on_gradient(tensor: torch.Tensor, hook: Callable[[Any], Any]) -> Any:
    """Call `hook` with the tensor's gradient; what it returns, if anything, takes its place.

    Returns the handle, None if the tensor takes no gradient.
    """
    return tensor.register_hook(hook) if tensor.requires_grad else None


def note_hooks() -> AbstractContextManager[list[Any]]:
    """Yield a list of the hooks that are set on gradients in the block."""
    return note_arguments(torch.Tensor, "register_hook")


def before_call(module: nn.Module, hook: Callable[..., Any]) -> Any:
    """Call hook(args, kwargs) before each forward; it returns the new pair. Returns the handle."""
    return module.register_forward_pre_hook(
        lambda module, args, kwargs: hook(args, kwargs), with_kwargs=True
    )


def after_call(module: nn.Module, hook: Callable[..., Any]) -> Any:
    """Call hook(output) after each forward; it returns the new output. Returns the handle."""
    return module.register_forward_hook(lambda module, args, output: hook(output))


def weighted_sum(tensors: Iterable[torch.Tensor], weights: Iterable[Array]) -> torch.Tensor:
    """Return the sum of the elements, each times its weight: a scalar."""
    parts = [
        (tensor * constant(weight, tensor)).sum()
        for tensor, weight in zip(tensors, weights, strict=True)
    ]
    return torch.stack(parts).sum()


def gradient(parameter: torch.Tensor) -> Array | None:
    """Return the parameter's gradient as `view` does, None if it has none."""
    return None if parameter.grad is None else view(parameter.grad)


def set_gradient(parameter: torch.Tensor, values: Array | None) -> None:
    """Give the parameter this gradient."""
    parameter.grad = None if values is None else constant(values, parameter)


def set_values(tensor: torch.Tensor, values: Array) -> None:
    """Give the tensor these values in its own dtype."""
    with torch.no_grad():
        tensor.copy_(torch.from_numpy(np.require(values, requirements=["C", "W"])))


def set_mode(model: nn.Module, training: bool) -> None:
    """Put the model into train or eval mode."""
    model.train(training)


def note_makers(note: Callable[[str], None]) -> AbstractContextManager[None]:
    """Call `note` with "optimizer" or "scheduler" whenever one is made in the block."""
    return note_construction(
        {"optimizer": torch.optim.Optimizer, "scheduler": torch.optim.lr_scheduler.LRScheduler},
        note,
    )


def learning_rates(optimizer: Any) -> list[float]:
    """Return the learning rate of each parameter group."""
    return [float(group["lr"]) for group in optimizer.param_groups]


def set_rates(optimizer: Any, rates: Sequence[float]) -> None:
    """Let the next step learn at these rates: one for all parameter groups, or one for each."""
    groups = optimizer.param_groups
    for number, group in enumerate(groups):
        group["lr"] = rates[number] if len(rates) == len(groups) else rates[0]


def attach(scheduler: Any, optimizer: Any) -> bool:
    """Give the optimizer its scheduler; True if it was missing. PyTorch's know theirs."""
    return False


def own_scheduler(optimizer: Any) -> Any:
    """Return the scheduler that the optimizer itself holds; PyTorch's hold none."""
    return None


@contextmanager
def change_precision(
    tensors: Iterable[torch.Tensor], dtype: str | None, resting: Container[int] = ()
) -> Iterator[dict[int, torch.Tensor]]:
    """Work in `dtype`: the floats of `tensors` and the default; afterwards all is as before.

    The tensors keep their identity, so that ties, optimizers and closures hold. dtype None keeps
    each tensor's own dtype and still protects its values. resting: ids of tensors that are left on
    the memory in which they came. Yields what they hold, by their ids.
    """
    filled = [tensor for tensor in tensors if has_values(tensor)]
    kept = [(tensor, tensor.data, tensor.grad) for tensor in filled]
    default = torch.get_default_dtype()
    try:
        if dtype is not None:
            torch.set_default_dtype(getattr(torch, dtype))
        for tensor, data, _ in kept:
            tensor.grad = None
            if id(tensor) not in resting:
                hold(tensor, convert(data, dtype))
        yield {id(tensor): data for tensor, data, _ in kept}
    finally:
        torch.set_default_dtype(default)
        for tensor, data, grad in kept:
            tensor.grad = None
            hold(tensor, data)
            tensor.grad = grad


def convert(data: torch.Tensor, dtype: str | None) -> torch.Tensor:
    """Return a copy of `data`: floats, real or complex, in the precision of `dtype`."""
    return data.to(_choose_dtype(data, dtype), copy=True)


def make_empty(data: torch.Tensor, dtype: str | None) -> torch.Tensor:
    """Return what `convert` returns, with any values."""
    return torch.empty_like(data, dtype=_choose_dtype(data, dtype))


def _choose_dtype(data: torch.Tensor, dtype: str | None) -> torch.dtype:
    if dtype is None or not (data.is_floating_point() or data.is_complex()):
        return data.dtype
    names = {"float64": torch.complex128, "float32": torch.complex64}
    wanted: torch.dtype = names[dtype] if data.is_complex() else getattr(torch, dtype)
    return wanted


def hold(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """Let the tensor use the memory of `data`; it must have no gradient now."""
    tensor.data = data


def use_one_thread() -> None:
    """Compute in this thread alone: a copy of a process has none of the other threads."""
    torch.set_num_threads(1)


def let_gradients(flow: bool) -> AbstractContextManager[Any]:
    """Return the block in which gradients flow, or in which none can, whatever was in force before."""
    return torch.set_grad_enabled(flow)  # type: ignore[no-any-return]


def can_gradients_flow() -> bool:
    """Tell whether gradients flow now."""
    return bool(torch.is_grad_enabled())


def _run_uncompiled() -> AbstractContextManager[Any]:
    """Return the block in which what torch.compile has made runs as it is written."""
    if not private.has_compiler():
        return nullcontext()
    set_stance = look_up(torch.compiler, "set_stance")  # torch 2.6 and later have it
    return private.switch_compiler_off() if set_stance is None else set_stance("force_eager")


@contextmanager
def _run_without_fast_path() -> Iterator[None]:
    """Let encoder layers call their modules in eval mode too; their fast path would pass them by."""
    switch = look_up(torch.backends, "mha")  # torch 2.3 and later have it
    if switch is None:  # what has a gradient takes no fast path
        yield
        return
    fast = switch.get_fastpath_enabled()
    try:
        switch.set_fastpath_enabled(False)
        yield
    finally:
        switch.set_fastpath_enabled(fast)


@contextmanager
def preserve_state() -> Iterator[None]:
    """Give the generators, the gradient switch, the fast paths and `compile` back as they were.

    One attention kernel runs in eval and in train mode: PyTorch's own choice hangs on the dropout.
    """
    state = torch.get_rng_state()
    flash = torch.backends.cuda.flash_sdp_enabled()  # of CPUs too
    gpus = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    try:
        torch.backends.cuda.enable_flash_sdp(False)
        with torch.enable_grad(), _run_without_fast_path(), _run_uncompiled():
            yield
    finally:
        torch.backends.cuda.enable_flash_sdp(flash)
        torch.set_rng_state(state)
        if gpus:
            torch.cuda.set_rng_state_all(gpus)
