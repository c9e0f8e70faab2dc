"""What is recorded of the user's code: its framework calls, as data that can cross to another process."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from reprod_align.base.blocks import Array
from reprod_align.model.source.lines import SourceLine
from reprod_align.randomness import CallKey

"""a module's dotted name, and the number of its call"""
Which = Literal["inputs", "outputs"]
LOSS: Final[CallKey] = ("", -1)
"""in place of a module's call: the code that computes the loss"""
RETURN: Final = "return"
"""the name of what stands for a module's own return statement"""


@dataclass(frozen=True)
class Switch:
    """Another value of a module's attribute."""

    path: str
    name: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Wanted:
    """Which calls of modules are to be recorded from the inside."""

    calls: frozenset[CallKey]
    modules: frozenset[str]
    """the modules with a counterpart: what happens in one of them is no other module's own code"""
    stock: frozenset[str] = frozenset()
    """the modules whose own code is the framework's"""
    last: tuple[CallKey, Which] | None = None
    """the run ends where this call has taken its "inputs", or given its "outputs" """
    switch: Switch | None = None
    """another value that a module holds in this run"""


class RunEnd(BaseException):
    """Ends a run from within the model: nothing further is wanted of it. User code lets it pass."""


@dataclass(frozen=True, eq=False)
class Operation:
    """One call that the user's code made: of a function, of an operator, or of a child module."""

    name: str
    """the function's own name; of a child module its dotted name; RETURN"""
    source: SourceLine
    call: CallKey
    """the call of the module whose code it stands in"""
    inputs: Sequence[Array]
    """of a child module: as they arrived"""
    outputs: Sequence[Array]
    """of a child module: as they went on"""
    differentiable: bool = False
    """whether a gradient can flow through an output"""
    constants: Sequence[Any] = ()
    """the numbers, texts and switches among its arguments"""
    names: Mapping[str, Any] = field(default_factory=dict)
    """the variables and attributes of `source.expression` that hold such a constant"""
    child: CallKey | None = None
    """of a child module: its call"""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """the constants that were given by keyword"""
    tensors: Mapping[str, int] = field(default_factory=dict)
    """the variables of `source.expression` that hold an input: which one"""
    called: str = ""
    """what `source.expression` calls, such as "self.activation" """
    makers: Sequence["Operation | None"] = ()
    """for each input the operation that gave this very tensor, if it was recorded"""
    caller: SourceLine | None = None
    """the user's line that called the function in which the call stands"""
    module: str = ""
    """the module whose code `source` stands in"""
    user: SourceLine | None = None
    """where that is a layer of the framework's: the user's line that led there"""
    whole: "Operation | None" = None
    """of a step inside a function: the call of the function"""


def find_consumer(operations: Sequence[Operation], key: CallKey, which: str) -> Operation | None:
    """Return the call of a child that takes its "inputs", or the return statement of its "outputs".

    The other of the two where only that was recorded.
    """
    children = [one for one in operations if one.child == key]
    returns = [one for one in operations if one.name == RETURN and one.call == key]
    found = [*children, *returns] if which == "inputs" else [*returns, *children]
    return found[0] if found else None


@contextmanager
def switched(modules: Mapping[str, Any], switch: Switch | None) -> Iterator[None]:
    """Put another value in force in the block. modules: the model's, by path."""
    module = None if switch is None else modules.get(switch.path)
    if switch is None or module is None or switch.name not in vars(module):
        yield
        return
    before = vars(module)[switch.name]
    vars(module)[switch.name] = switch.after
    try:
        yield
    finally:
        vars(module)[switch.name] = before


def list_plain_attributes(module: Any) -> dict[str, Any]:
    """Return the switches, numbers and texts that a module holds as attributes of its own."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, (bool, int, float, str)) and name[0] != "_" and name != "training"
    }
