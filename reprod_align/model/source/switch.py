"""Another value that a module holds as an attribute, in force for one run."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from reprod_align.model.source.operation import Switch


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
