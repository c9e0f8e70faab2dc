"""The parameters and buffers that a model's modules hold, by name."""

from collections.abc import Iterable, Iterator, Mapping, Set
from types import ModuleType
from typing import Any, NamedTuple

from reprod_align.model.side import TensorInfo
from reprod_align.model.store import keep_copy, keep_own
from reprod_align.model.trace import Array


class HeldTensor(NamedTuple):
    """A tensor and the module that holds it."""

    name: str
    path: str
    module: Any
    role: str
    tensor: Any
    is_parameter: bool


class HeldTensors:
    """All tensors of a model, in the order of its modules; a shared one occurs under each name."""

    def __init__(self, framework: ModuleType, model: Any) -> None:
        """Take the backend's `side` and a model of its framework."""
        self.fw, self.model = framework, model

    def __iter__(self) -> Iterator[HeldTensor]:
        """Yield each tensor with its name; the model is asked anew each time."""
        for path, module in self.fw.modules(self.model):
            for role, tensor, is_parameter in self.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                yield HeldTensor(name, path, module, role, tensor, is_parameter)

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Yield every parameter once, with its name."""
        seen: set[int] = set()
        for held in self:
            if held.is_parameter and id(held.tensor) not in seen:
                seen.add(id(held.tensor))
                yield held.name, held.tensor

    def describe(self, ties: Mapping[int, str]) -> dict[str, TensorInfo]:
        """Return what is known of every tensor by name; ties: of `choose_names`."""
        return {
            held.name: TensorInfo(
                name=held.name,
                owner=held.path,
                role=held.role,
                shape=tuple(held.tensor.shape),
                is_float=bool(held.tensor.is_floating_point()),
                is_parameter=held.is_parameter,
                is_trainable=held.is_parameter and bool(self.fw.carries_gradient(held.tensor)),
                is_persistent=bool(self.fw.is_persistent(held.module, held.role)),
                tie=ties[id(held.tensor)],
            )
            for held in self
        }

    def copy_values(self) -> dict[str, Array]:
        """Return a copy of every tensor by name, in the framework's own layout."""
        return {held.name: keep_copy(self.fw.view(held.tensor)) for held in self}

    def copy_buffers(self) -> dict[str, Array]:
        """Return a copy of every tensor that is not a parameter, by name."""
        return {
            held.name: keep_copy(self.fw.view(held.tensor))
            for held in self
            if not held.is_parameter
        }

    def set_gradients(self, gradients: Mapping[str, Array]) -> None:
        """Give every parameter its gradient; one that is not named loses its own."""
        for name, parameter in self.parameters():
            self.fw.set_gradient(parameter, gradients.get(name))

    def copy_gradients(self) -> dict[str, Array]:
        """Return a copy of each parameter's gradient, where it has one."""
        found = ((name, self.fw.gradient(tensor)) for name, tensor in self.parameters())
        return {name: keep_copy(gradient) for name, gradient in found if gradient is not None}

    def take_gradients(self) -> dict[str, Array]:
        """Return each parameter's gradient, where it has one; the parameters lose them."""
        taken: dict[str, Array] = {}
        for name, parameter in self.parameters():
            gradient = self.fw.gradient(parameter)
            self.fw.set_gradient(parameter, None)
            if gradient is not None:
                taken[name] = keep_own(gradient)
        return taken


def choose_names(held: Iterable[HeldTensor], layers: Set[str]) -> dict[int, str]:
    """Return the name that stands for all names of each tensor, by id: its first, if a layer has none.

    layers: the framework's own, which tell how the tensor is used: a bare parameter doesn't.
    """
    chosen: dict[int, HeldTensor] = {}
    for one in held:
        known = chosen.setdefault(id(one.tensor), one)
        if known.path not in layers and one.path in layers:
            chosen[id(one.tensor)] = one
    return {tensor: one.name for tensor, one in chosen.items()}
