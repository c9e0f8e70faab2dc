"""Puts something else in the place of a function or an attribute while a block lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
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
