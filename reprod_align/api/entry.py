"""What an entry of the table is, what its code may use, and what running it gives.

Both sides run on the installed frameworks: do they agree, and does the plain call differ?
"""

import ast
import importlib
import importlib.util
import inspect
import logging
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final

from reprod_align.base import FRAMEWORKS, find_version
from reprod_align.base.console import quieten, without_warnings
from reprod_align.base.difference import gap

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


EQUAL: Final = "equal"
DIFFERS: Final = "differs as described"
OUT_OF_DATE: Final = "the description is out of date"
NOT_RUN: Final = "not run"

PACKAGES: Final = ("torch", "paddlepaddle")
_VISIBLE: Final = 1e-10  # a smaller difference between the plain call and PyTorch is none


@dataclass(frozen=True)
class EntryOutcome:
    """What running an entry gave: one of the four results, and what was measured, in words."""

    result: str
    measured: str

    @property
    def holds(self) -> bool:
        """Whether the entry describes the installed versions."""
        return self.result in (EQUAL, DIFFERS)


def list_versions() -> dict[str, str]:
    """Return the versions of the frameworks that are installed; "" for one that is not."""
    found = {package: find_version(package) for package in PACKAGES}
    return {name: one.partition("+")[0] for name, one in found.items()}  # 2.13.0 for 2.13.0+cpu


def run_entry(entry: Entry) -> EntryOutcome:
    """Run both sides and the plain call; an error on either side is an outcome, never raised."""
    missing = [name for name in FRAMEWORKS if importlib.util.find_spec(name) is None]
    if missing:
        return EntryOutcome(NOT_RUN, f"{' and '.join(missing)} not installed here")
    quieten()
    with without_warnings(), _silence_log(), _use_float64():
        sides = [_call(entry, side) for side in ("torch_side", "paddle_side")]
        errors = [
            f"{side}: {words}"
            for side, (_, words) in zip(FRAMEWORKS.values(), sides, strict=True)
            if words
        ]
        if errors:
            return EntryOutcome(OUT_OF_DATE, "; ".join(errors))
        apart = measure_difference(sides[0][0], sides[1][0])
        if not apart <= entry.tolerance:
            return EntryOutcome(
                OUT_OF_DATE, f"the equivalent code differs by {_describe_order(apart)}"
            )
        return _judge_plain(entry, sides[0][0]) if entry.has_trap else EntryOutcome(EQUAL, "")


def _judge_plain(entry: Entry, expected: Any) -> EntryOutcome:
    found, words = _call(entry, "plain")
    if entry.raises or words:
        return _judge_error(entry, words)
    apart = measure_difference(expected, found)
    if not apart > max(_VISIBLE, 5 * entry.tolerance):
        return EntryOutcome(OUT_OF_DATE, "the plain call gives the same")
    if not entry.as_described(expected, found):
        return EntryOutcome(
            OUT_OF_DATE, f"the plain call differs by {_describe_order(apart)}, not as described"
        )
    return EntryOutcome(DIFFERS, _describe_amount(apart))


def _judge_error(entry: Entry, words: str) -> EntryOutcome:
    name, _, part = entry.raises.partition(": ")
    if not entry.raises:
        return EntryOutcome(OUT_OF_DATE, f"the plain call: {words}")
    if not words:
        return EntryOutcome(OUT_OF_DATE, f"the plain call does not raise {name}")
    if not words.startswith(f"{name}:") or part not in words:
        return EntryOutcome(OUT_OF_DATE, f"the plain call raises something else: {words}")
    return EntryOutcome(DIFFERS, f"the plain call raises {name}")


def _call(entry: Entry, side: str) -> tuple[Any, str]:
    """Return what a side computes, and "" or its error in one line."""
    import paddle
    import torch

    torch.manual_seed(0)
    paddle.seed(0)
    np.random.seed(0)
    try:
        return as_numpy(getattr(entry, side)()), ""
    except Exception as error:  # the entry may be about this very error
        lines = [line for line in str(error).splitlines() if line.strip()] or [""]
        said = next((line for line in lines if "Error: " in line), lines[-1]).strip()
        return None, f"{type(error).__name__}: {said}"


@contextmanager
def _silence_log() -> Iterator[None]:
    """Keep the frameworks' log lines off the screen."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def _use_float64() -> Iterator[None]:
    """Make float64 the default dtype of both frameworks, and dynamic graphs Paddle's mode."""
    import paddle
    import torch

    before = torch.get_default_dtype(), paddle.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    paddle.set_default_dtype("float64")
    try:
        yield
    finally:
        torch.set_default_dtype(before[0])
        paddle.set_default_dtype(before[1])
        paddle.disable_static()


def as_numpy(value: Any) -> Any:
    """Return tensors as arrays, also inside sequences; strings and None as they are."""
    if value is None or isinstance(value, str):
        return value
    if hasattr(value, "detach"):
        return np.asarray(value.detach().cpu().numpy())
    if isinstance(value, Sequence):
        return [as_numpy(item) for item in value]
    return np.asarray(value)


def measure_difference(expected: Any, found: Any) -> float:
    """Return the largest difference, relative to the largest element or 1; inf if they can't be compared."""
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = zip(expected, found, strict=True)
        return max((measure_difference(one, other) for one, other in pairs), default=0.0)
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        same = type(expected) is type(found) and not isinstance(expected, list)
        return 0.0 if same and expected == found else math.inf
    if expected.shape != found.shape or _find_kind(expected) != _find_kind(found):
        return math.inf
    if _find_kind(expected) != "f":
        return 0.0 if np.array_equal(expected, found) else math.inf
    apart = gap(expected, found)
    return apart.difference / max(1.0, apart.scale)


def _find_kind(array: np.ndarray[Any, Any]) -> str:
    return "i" if array.dtype.kind in "iu" else array.dtype.kind


def _describe_order(apart: float) -> str:
    return f"1e{round(math.log10(apart)):+03d}" if 0 < apart < math.inf else f"{apart:g}"


def _describe_amount(apart: float) -> str:
    """Say how large a difference is, in words that are the same on every machine."""
    if apart == math.inf:
        return "another shape, type or order"
    return "visible" if apart > 1e-4 else "in the digits of float32"
