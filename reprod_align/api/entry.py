"""What an entry of the table is, and what its code may use."""

import ast
import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

import numpy as np


class _LazyModule:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        module = importlib.import_module(self._name)
        if not hasattr(module, attribute):  # a submodule that the package does not import itself
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{self._name}.{attribute}")
        return getattr(module, attribute)


torch: Any = _LazyModule("torch")
paddle: Any = _LazyModule("paddle")
transformers: Any = _LazyModule("transformers")
paddlenlp: Any = _LazyModule("paddlenlp")
datasets: Any = _LazyModule("datasets")


@dataclass(frozen=True)
class Convention:
    """How Paddle writes a setting: its argument ("" if there is none), and PyTorch's value as its own.

    `doubt` says when a difference is none after all; it is "" where a difference always counts.
    """

    argument: str
    from_torch: Callable[[Any], Any] | None = None
    doubt: str = ""


class Entry:
    """One difference, or agreement, between the frameworks; a subclass's docstring says which.

    `torch_side` and `paddle_side` compute the same; `plain`, where there is a trap, is what a porter
    would write in Paddle first. They return tensors, numbers, strings, or sequences of these; the
    default dtype is float64 on both sides while they run.
    """

    apis: ClassVar[tuple[str, str]]
    """PyTorch's name and Paddle's"""
    chinese: ClassVar[str]
    """the docstring in Chinese"""
    sources: ClassVar[tuple[str, ...]] = ()
    """the documents that tell of it, and where"""
    keywords: ClassVar[str] = ""
    obsolete: ClassVar[bool] = False
    """whether `plain` is something that the sources use and that is gone"""
    raises: ClassVar[str] = ""
    """what `plain` ends in, "NameOfError: part of its message", if it is an error"""
    tolerance: ClassVar[float] = 1e-12
    """largest difference of the two sides, relative to the largest element or 1"""
    because: ClassVar[str] = ""
    """why the tolerance is wider than 1e-12"""
    conventions: ClassVar[Mapping[str, Convention]] = {}
    """what `audit` knows from this entry: settings, by PyTorch's name"""
    convention_kinds: ClassVar[tuple[str, ...]] = ()
    """the only kinds of layers that these conventions hold for; () for all"""
    optimizer_arguments: ClassVar[Mapping[str, str]] = {}
    """Paddle's argument for an optimizer's setting, by PyTorch's name"""
    optimizer_settings: ClassVar[tuple[str, ...]] = ()
    """further settings of optimizers that it tells of"""

    def torch_side(self) -> Any:
        """Return what PyTorch computes."""
        raise NotImplementedError

    def paddle_side(self) -> Any:
        """Return the same from Paddle."""
        raise NotImplementedError

    def plain(self) -> Any:
        """Return what the call that looks the same gives in Paddle."""
        raise NotImplementedError

    def as_described(self, expected: Any, found: Any) -> bool:
        """Tell whether `plain` differs as the entry says; by default any visible difference will do.

        expected, found: what PyTorch's side and `plain` returned, as numpy arrays.
        """
        return True

    @property
    def slug(self) -> str:
        """The name for the command line: batch-norm-momentum for BatchNormMomentum."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", type(self).__name__).lower()

    @property
    def differs(self) -> str:
        """What differs, in one sentence."""
        return " ".join((type(self).__doc__ or "").split())

    @property
    def has_trap(self) -> bool:
        """Whether the plain call computes something else."""
        return type(self).plain is not Entry.plain

    def code(self, side: str) -> str:
        """Return the source of "torch_side", "paddle_side", "plain" or "as_described", dedented."""
        lines = inspect.getsource(getattr(type(self), side)).splitlines()
        start = next(at for at, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
        return textwrap.dedent("\n".join(lines[start:]))

    def helpers(self) -> list[str]:
        """Return the sources of the module's own functions and classes that the entry's code calls."""
        own = _list_definitions(type(self).__module__)
        names = re.findall(r"\b_[A-Za-z]\w*", own[type(self).__name__])
        return [own[name] for name in dict.fromkeys(names) if name in own]


@cache
def _list_definitions(module: str) -> dict[str, str]:
    """Return the sources of a module's functions and classes; `inspect` reads the file for each."""
    text = inspect.getsource(sys.modules[module])
    lines, found = text.splitlines(), {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min(one.lineno for one in (node, *node.decorator_list))
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


DATA_NOTE: Final = (
    "`numbers(2, 3)` is a (2, 3) array of normal random numbers, the same on both sides; "
    "`filled(layer)` gives a layer's parameters such numbers; the default dtype is float64"
)


def numbers(*shape: int, seed: int = 0) -> Any:
    """Return normal random numbers, float64, the same for the same shape and seed."""
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def filled(layer: Any) -> Any:
    """Return the layer of either framework with its parameters set to `numbers`, a seed each."""
    for seed, parameter in enumerate(layer.parameters()):
        values = numbers(*parameter.shape, seed=seed) / 2
        if hasattr(parameter, "set_value"):
            parameter.set_value(values)
        else:
            parameter.data = torch.tensor(values)
    return layer
