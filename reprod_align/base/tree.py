"""The tensors inside whatever a module takes or gives: tuples, lists, dicts, dataclasses, None.

Both frameworks' models nest their outputs as they like; here they become a flat list of leaves,
each with the path at which it stands ("[0]", "logits", "states[1][0]"). Knows no framework:
`is_tensor` tells what a leaf is.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import fields, is_dataclass
from typing import Any

IsTensor = Callable[[object], bool]


def leaves(value: object, is_tensor: IsTensor) -> dict[str, Any]:
    """Return every tensor in `value` by its path, in order; other values are skipped."""
    found: dict[str, Any] = {}

    def keep(path: str, tensor: Any) -> Any:
        found[path] = tensor
        return tensor

    replace(value, is_tensor, keep)
    return found


def plain_leaves(value: object, is_tensor: IsTensor) -> dict[str, Any]:
    """Return the leaves of `value` other than tensors, by their paths."""
    every = leaves(value, lambda part: is_tensor(part) or not _is_container(part))
    return {path: part for path, part in every.items() if not is_tensor(part)}


def _is_container(value: object) -> bool:
    known = isinstance(value, (Mapping, tuple, list))
    return known or (is_dataclass(value) and not isinstance(value, type))


def replace(value: Any, is_tensor: IsTensor, change: Callable[[str, Any], Any]) -> Any:
    """Return `value` with each tensor replaced by change(path, tensor), the containers copied."""
    return _replace(value, is_tensor, change, "", ())


def _replace(
    value: Any,
    is_tensor: IsTensor,
    change: Callable[[str, Any], Any],
    path: str,
    above: tuple[int, ...],
) -> Any:
    if is_tensor(value):
        return change(path, value)
    if id(value) in above:  # a container that holds itself
        return value

    def inner(part: Any, key: str) -> Any:
        return _replace(part, is_tensor, change, path + key, (*above, id(value)))

    if isinstance(value, Mapping):
        return _fill(value, {k: inner(v, _write_key(path, str(k))) for k, v in value.items()})
    if isinstance(value, (tuple, list)):
        return _rebuild(value, [inner(part, f"[{number}]") for number, part in enumerate(value)])
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: getattr(value, f.name) for f in fields(value)}
        return _assign(value, {k: inner(v, _write_key(path, k)) for k, v in parts.items()})
    return value


Held = tuple[Any, Any, Any]
"""a list or dict, the copy of it that went on, and what that copy held then"""


def list_copies(value: Any, passed: Any) -> Iterator[Held]:
    """Yield each list and dict in `value` of which `replace` made a copy in `passed`."""
    if value is passed:
        return
    if isinstance(value, list | dict):
        yield value, passed, copy(passed)
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from list_copies(part, passed[key])
    elif isinstance(value, tuple | list):
        for part, other in zip(value, passed, strict=True):
            yield from list_copies(part, other)


def give_back(held: Held, change: Callable[[Any], Any]) -> None:
    """Repeat in a list or dict what was put into its copy, each part as `change` gives it."""
    value, passed, before = held
    if isinstance(value, list):
        if len(passed) != len(before) or not _is_unchanged(before, passed):
            value[:] = map(change, passed)
    elif [*passed] != [*before] or not _is_unchanged(before.values(), passed.values()):
        for key in [*value]:
            if key not in passed:
                del value[key]
        for key, part in passed.items():
            value[key] = change(part)


def _write_key(path: str, key: str) -> str:
    return f".{key}" if path else key


def _rebuild(value: Any, parts: list[Any]) -> Any:
    if _is_unchanged(value, parts):
        return value
    if hasattr(value, "_fields"):  # a namedtuple takes its parts one by one
        return type(value)(*parts)
    return type(value)(parts)


def _fill(value: Mapping[Any, Any], parts: dict[Any, Any]) -> Mapping[Any, Any]:
    if _is_unchanged(value.values(), parts.values()):
        return value
    filled: Any = copy(value)
    for key, part in parts.items():
        filled[key] = part
    return filled  # type: ignore[no-any-return]


def _assign(value: Any, parts: dict[str, Any]) -> Any:
    if _is_unchanged([getattr(value, name) for name in parts], parts.values()):
        return value
    changed = copy(value)
    for name, part in parts.items():
        object.__setattr__(changed, name, part)
    return changed


def _is_unchanged(before: Any, after: Any) -> bool:
    """Tell whether nothing was replaced: then the caller's own container is given back."""
    return all(old is new for old, new in zip(before, after, strict=True))
