"""A section of a model, which can be emptied: hidden, it holds no tensors and no modules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from types import ModuleType
from typing import Any

from reprod_align.base.naming import is_within
from reprod_align.model.local import LocalSide
from reprod_align.model.trace import Array

Forward = Callable[..., Any]
Read = Callable[[Sequence[str]], Mapping[str, Array]]
"""from names of tensors of one side to the values of those that a file holds"""


def _read_nothing(names: Sequence[str]) -> Mapping[str, Array]:
    return {}


class Held:
    """Tensors of a side, with what fills them."""

    def __init__(self, side: LocalSide, unfilled: ModuleType, source: Read = _read_nothing) -> None:
        """Take all tensors of a side; unfilled: the backend's module of that name."""
        self.side, self.source, self._unfilled = side, source, unfilled
        self._tensors: dict[str, Any] = {}
        self._filled: list[str] = []
        for path, module in side.fw.modules(side.model):
            for role, tensor, is_parameter in side.fw.own_tensors(module):
                name = f"{path}.{role}" if path else role
                self._tensors[name] = tensor
                if is_parameter:
                    self._filled.append(name)

    def choose(self, wanted: Callable[[str], bool]) -> "Held":
        """Return those whose name is wanted."""
        chosen = copy(self)
        chosen._tensors = {name: one for name, one in self._tensors.items() if wanted(name)}
        chosen._filled = [name for name in self._filled if wanted(name)]
        return chosen

    def read(self, name: str) -> Array | None:
        """Return a tensor's values, from the file or as they are; None if it has none."""
        tensor = self._tensors[name]
        found = self.source([name]).get(name)
        if found is None and self.side.fw.has_values(tensor):
            return self.side.fw.array(tensor)  # type: ignore[no-any-return]
        return found

    def fill(self) -> None:
        """Give them their values; a parameter that no file holds gets those that its layer makes."""
        for name, array in self.source([*self._tensors]).items():
            self._unfilled.fill(self._tensors[name], array)
        for name in self._filled:
            if not self.side.fw.has_values(self._tensors[name]):
                self._unfilled.fill_as_made(self._tensors[name])

    def clear(self) -> None:
        """Give the memory of the parameters back."""
        for name in self._filled:
            self._unfilled.clear(self._tensors[name])


class Shell:
    """A module that stands in a model with or without its contents."""

    def __init__(self, held: Held, path: str) -> None:
        """Take the section at `path`; held: all tensors of its side."""
        self.path, self.side = path, held.side
        self._held = held.choose(lambda name: is_within(name, path))
        self.module = dict(held.side.fw.modules(held.side.model))[path]
        self._attributes: dict[str, Any] = self.module.__dict__
        self._places: Sequence[dict[str, Any]] = held.side.fw.contents(self.module)
        self._contents = [dict(place) for place in self._places]
        self._forward = self._attributes.get("forward")

    def hide(self, forward: Forward) -> None:
        """Let the module hold nothing, and compute `forward`."""
        self._attributes["forward"] = forward
        for place in self._places:
            place.clear()

    def show(self) -> None:
        """Let the module be itself again."""
        self._attributes.pop("forward", None)
        if self._forward is not None:
            self._attributes["forward"] = self._forward
        for place, content in zip(self._places, self._contents, strict=True):
            place.clear()
            place.update(content)

    def fill(self) -> None:
        """Give its tensors their values."""
        self._held.fill()

    def clear(self) -> None:
        """Give the memory of its parameters back."""
        self._held.clear()

    @contextmanager
    def filled(self) -> Iterator[None]:
        """Show the module with its values in the block; afterwards it is hidden, without memory."""
        forward = self._attributes["forward"]
        self.show()
        try:
            self.fill()
            yield
        finally:
            self.clear()
            self.hide(forward)
