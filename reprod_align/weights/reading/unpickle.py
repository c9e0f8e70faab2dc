"""The pickles inside checkpoints, read without running them: tensors stay in the file.

What a checkpoint holds beside tensors and plain values (an argparse.Namespace, a scheduler) becomes an
`Opaque`: it is named, never made.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reprod_align.errors import one_line
from reprod_align.records.cost import Refused
from reprod_align.records.pickled import KNOWN_NAMES, Builder
from reprod_align.records.safe_pickle import HANDLERS, Machine


@dataclass(frozen=True)
class Opaque:
    """Something that is neither a tensor nor plain data: the name of its class or maker."""

    name: str


class CheckpointMachine(Machine):
    """A machine that knows what training scripts pickle; see records.safe_pickle for its rules."""

    def __init__(self, data: memoryview, builder: Builder | None = None) -> None:
        """Take the bytes of the pickle."""
        super().__init__(data, builder)
        self.handlers = _HANDLERS

    def find_name(self, module: str, name: str) -> Any:
        """Return what stands for a name; an unknown one is opaque."""
        if (module, name) in KNOWN_NAMES:
            return super().find_name(module, name)
        return Opaque(one_line(f"{module}.{name}"[:120]))

    def call(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        """Return what stands for the result."""
        return function if isinstance(function, Opaque) else super().call(function, arguments)

    def set_state(self, target: Any, state: Any) -> Any:
        """Return the object; what is opaque keeps no state."""
        return target if isinstance(target, Opaque) else super().set_state(target, state)

    def find_persistent(self, key: Any) -> Any:
        """Return what stands for an object that lies outside the pickle."""
        raise Refused("refers to data outside its pickle")

    def pop(self) -> Any:
        """Return the top of the stack."""
        if not self.stack:
            raise Refused("is damaged: its pickle takes a value that is not there")
        return self.stack.pop()


def _unless_opaque(handler: Callable[[Any], None], is_group: bool) -> Callable[[Any], None]:
    """Return the instruction; what it adds to an opaque object is dropped."""

    def run(machine: CheckpointMachine) -> None:
        below = machine.marks[-1] if is_group and machine.marks else machine.stack
        position = -1 if is_group else -handler_size
        if len(below) >= -position and isinstance(below[position], Opaque):
            if is_group:
                machine.stack = machine.marks.pop()
            else:
                del machine.stack[position + 1 :]
        else:
            handler(machine)

    handler_size = 3 if handler is HANDLERS[b"s"] else 2
    return run


def _persistent(machine: CheckpointMachine) -> None:
    machine.stack.append(machine.find_persistent(machine.pop()))


def _new(machine: CheckpointMachine) -> None:
    """Make an object without calling its class."""
    arguments, kind = machine.pop(), machine.pop()
    machine.stack.append(machine.call(kind, arguments) if isinstance(arguments, tuple) else kind)


def _new_with_keywords(machine: CheckpointMachine) -> None:
    machine.pop()
    _new(machine)


def _frozen(machine: CheckpointMachine) -> None:
    machine.since_mark()
    machine.stack.append(Opaque("frozenset"))


def _old_text(layout: str) -> Callable[[Any], None]:
    """Return the instruction that reads a string of Python 2."""
    return lambda machine: machine.stack.append(str(machine.read(machine.number(layout)), "latin1"))


_HANDLERS: Mapping[bytes, Callable[[Any], None]] = {
    **HANDLERS,
    b"a": _unless_opaque(HANDLERS[b"a"], False),  # APPEND
    b"e": _unless_opaque(HANDLERS[b"e"], True),  # APPENDS
    b"s": _unless_opaque(HANDLERS[b"s"], False),  # SETITEM
    b"u": _unless_opaque(HANDLERS[b"u"], True),  # SETITEMS
    b"Q": _persistent,  # BINPERSID
    b"\x81": _new,  # NEWOBJ
    b"\x92": _new_with_keywords,  # NEWOBJ_EX
    b"\x8f": lambda machine: machine.stack.append(Opaque("set")),  # EMPTY_SET
    b"\x90": _unless_opaque(HANDLERS[b"e"], True),  # ADDITEMS
    b"\x91": _frozen,  # FROZENSET
    b"T": _old_text("<i"),  # BINSTRING
    b"U": _old_text("<B"),  # SHORT_BINSTRING
}
