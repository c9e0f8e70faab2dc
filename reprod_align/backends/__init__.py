"""One module per framework, the same functions in both: `backends.torch` and `backends.paddle`.

Only the one that is imported needs its framework. Arrays that leave a backend are laid out as
PyTorch lays them out, so that both sides' parameters and gradients compare without a thought:
`paddle.nn.Linear` keeps its weight as (in, out), PyTorch as (out, in).

Here is what both use to put something else in the place of a function while a block lasts.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any


@contextmanager
def replace_attribute(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    """Let `owner` have `replacement` as its attribute `name`; its own comes back after the block."""
    own = getattr(owner, name)
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, own)


@contextmanager
def note_construction(kinds: Mapping[str, type], note: Callable[[str], None]) -> Iterator[None]:
    """Call `note` with a kind's name whenever an object of its class is initialised in the block."""
    with ExitStack() as stack:
        for name, kind in kinds.items():
            stack.enter_context(replace_attribute(kind, "__init__", _note_first(name, kind, note)))
        yield


def _note_first(name: str, kind: type, note: Callable[[str], None]) -> Callable[..., None]:
    own = kind.__init__  # type: ignore[misc]

    def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
        note(name)
        own(self, *args, **kwargs)

    return initialise


@contextmanager
def note_arguments(owner: Any, name: str) -> Iterator[list[Any]]:
    """Yield a list of what a method is given first in the block; the calls are made."""
    own, noted = getattr(owner, name), list[Any]()

    def call(self: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
        noted.append(first)
        return own(self, first, *args, **kwargs)

    with replace_attribute(owner, name, call):
        yield noted
