"""Every private name of PyTorch that the library reads. `backends.paddle.private` is the twin.

A name with a public way beside it costs nothing where it is gone; `NAMES` has a row for each of the others.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from operator import attrgetter
from typing import Any, Final

from reprod_align.backends.versions import PrivateNames, look_up, make_rows

import torch
from torch import nn

_NO_OPERATORS: Final = (
    "random draws are not shared, and no kernel of PyTorch's is held against itself"
)
_MODE_PATH: Final = "torch.utils._python_dispatch.TorchDispatchMode"
_SCHEMA_PATH: Final = "OpOverload._schema"


def _import_dispatch() -> Any:
    return import_module("torch.utils._python_dispatch")


NAMES: Final = PrivateNames(
    "PyTorch",
    torch.__version__,
    (
        *make_rows(_NO_OPERATORS, _import_dispatch, _MODE_PATH),
        *make_rows(_NO_OPERATORS, lambda: torch.ops.aten.relu.default, _SCHEMA_PATH),
        *make_rows(
            "its draws are not refused",
            lambda: torch.ops.aten,
            "torch.ops.aten._standard_gamma",
            "torch.ops.aten._sample_dirichlet",
        ),
        *make_rows(
            "tensors changed in place are not seen", lambda: torch.Tensor, "Tensor._version"
        ),
        *make_rows(
            "sections keep their memory, and buffers that a run adds stay in the model",
            nn.Module,
            "Module._parameters",
            "Module._buffers",
            "Module._modules",
        ),
        *make_rows(
            "float32 that a checkpointed block asks for as it runs again is not answered",
            lambda: torch.autograd.graph,
            "graph._engine_run_backward",
        ),
        *make_rows("port ends at a call inside vmap", lambda: torch._C, "torch._C._functorch"),
        *make_rows(
            "what a hook does before an optimizer's step is not seen",
            lambda: torch.optim.SGD([torch.zeros(1)], lr=0.1),
            "Optimizer._optimizer_step_pre_hooks",
        ),
    ),
)
"""those without a public way"""

_WITHOUT: Final = next(
    (path for path in (_MODE_PATH, _SCHEMA_PATH) if NAMES.rows[path].is_missing), ""
)


class _SeesNothing:
    """Stands for the dispatch mode in a version without it."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_MODE: Any = _SeesNothing if _WITHOUT else _import_dispatch().TorchDispatchMode


class DispatchMode(_MODE):  # type: ignore[misc]
    """A block in which `__torch_dispatch__` makes every call of an operator."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Tell PyTorch not to import its compiler at the first operator, which takes two seconds."""
        return False


def sees_operators() -> bool:
    """Tell whether a `DispatchMode` is called at all."""
    return not _WITHOUT


def miss_operators() -> None:
    """Note that no operator is seen."""
    NAMES.miss(_WITHOUT)


def refuse_draws() -> None:
    """Raise MissingNameError: random numbers were drawn, and no operator is seen."""
    NAMES.fail(_WITHOUT)


schema: Final = attrgetter("_schema")
"""an operator's arguments, name and whether it changes one"""

UNSHARED: Final = {
    found
    for name in ("_standard_gamma", "_sample_dirichlet")
    if (found := look_up(torch.ops.aten, name)) is not None
}
"""operators without a public name whose draws cannot be shared"""


def _count_none(tensor: torch.Tensor) -> int:
    NAMES.miss("Tensor._version")
    return 0


count_changes: Final = (
    _count_none if look_up(torch.Tensor, "_version") is None else attrgetter("_version")
)
"""how often a tensor was changed in place"""

_CONTENTS: Final = ("_parameters", "_buffers", "_modules")
_WITHOUT_CONTENTS: Final = [name for name in _CONTENTS if look_up(nn.Module(), name) is None]


def _copy_contents(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    NAMES.miss(f"Module.{_WITHOUT_CONTENTS[0]}")
    return (
        dict(module.named_parameters(recurse=False, remove_duplicate=False)),
        dict(module.named_buffers(recurse=False, remove_duplicate=False)),
        dict(module.named_children()),
    )


contents: Final = _copy_contents if _WITHOUT_CONTENTS else attrgetter(*_CONTENTS)
"""a module's own dicts of its parameters, its buffers and its children"""


def is_persistent(module: nn.Module, name: str) -> bool:
    """Tell whether the module's tensor `name` stands in its state dict."""
    apart = look_up(module, "_non_persistent_buffers_set")
    return name in module.state_dict() if apart is None else name not in apart


def step_hooks(optimizer: Any) -> Any:
    """Return what an optimizer calls before its step; wrappers of optimizers have nothing."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return look_up(optimizer, "_optimizer_step_pre_hooks")
    return NAMES.read_or_miss(optimizer, "Optimizer._optimizer_step_pre_hooks", None)


def is_batched(tensor: torch.Tensor) -> bool:
    """Tell whether a tensor is one that vmap or grad has made of another: it can't be copied."""
    kept = NAMES.read_or_miss(torch._C, "torch._C._functorch", None)
    return kept is not None and bool(kept.is_functorch_wrapped_tensor(tensor))


def find_engine() -> Callable[[torch.Tensor], None] | None:
    """Return what does the work of `scalar.backward()` unseen by function modes; None without it."""
    run = NAMES.read_or_miss(torch.autograd.graph, "graph._engine_run_backward", None)
    if run is None:
        return None

    def go_back(scalar: torch.Tensor) -> None:
        start = (scalar,), (torch.ones_like(scalar),)
        run(*start, False, False, (), allow_unreachable=True, accumulate_grad=True)

    return go_back


def switch_compiler_off() -> AbstractContextManager[Any]:
    """Return a block in which nothing is compiled, for a PyTorch that has no `set_stance` yet."""
    config = look_up(sys.modules["torch._dynamo"], "config")
    made: AbstractContextManager[Any] = config.patch(disable=True)
    return made


def has_compiler() -> bool:
    """Tell whether the compiler was imported, which takes a second: else nothing is compiled."""
    return "torch._dynamo" in sys.modules
