"""What every package needs: arrays, whole files, text and JSON; the frameworks' names, and versions."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

T = TypeVar("T")
Framework = Literal["torch", "paddle"]
FRAMEWORKS: Final[dict[Framework, str]] = {"torch": "PyTorch", "paddle": "Paddle"}
"""name in code -> in words; the usual reference's first"""
_reference: ContextVar[Framework] = ContextVar("reference", default="torch")


@dataclass(frozen=True)
class Role:
    """One side of a pair in a sentence: its text is the name of the framework that plays it."""

    is_reference: bool

    @property
    def framework(self) -> Framework:
        """The framework, by its name in code."""
        return "torch" if self.is_reference is (_reference.get() == "torch") else "paddle"

    def choose(self, torch: T, paddle: T) -> T:
        """Return what holds of the framework that plays the role."""
        return torch if self.framework == "torch" else paddle

    def __str__(self) -> str:
        """Return the framework's name in words."""
        return FRAMEWORKS[self.framework]


REFERENCE: Final = Role(is_reference=True)
PORT: Final = Role(is_reference=False)


@contextmanager
def take_reference(framework: Framework) -> Iterator[None]:
    """In the block, REFERENCE stands for this framework and PORT for the other."""
    before = _reference.set(framework)
    try:
        yield
    finally:
        _reference.reset(before)


def find_version(package: str) -> str:
    """Return the version of an installed package; "" if there is none."""
    from importlib.metadata import PackageNotFoundError, version  # most commands ask for none

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
