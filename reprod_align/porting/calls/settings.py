"""What PyTorch's layers keep as attributes, and where Paddle's keep it."""

import inspect
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, Final

_RENAMED: Final = {
    "running_mean": "_mean", "running_var": "_variance", "eps": "_epsilon", "_modules": "_sub_layers",
    "return_indices": "return_mask",
}  # fmt: skip
"""PyTorch's attribute -> Paddle's, where it is another word than the same one behind an underscore"""
_COMPUTED: Final = {
    ("paddle.nn.Linear", "in_features"): "self.weight.shape[0]",
    ("paddle.nn.Linear", "out_features"): "self.weight.shape[1]",
    ("paddle.nn.LayerNorm", "normalized_shape"): "tuple(self._normalized_shape)",
    **{
        (f"paddle.nn.{kind}", "momentum"): "(1 - self._momentum)"
        for kind in (
            "BatchNorm1D",
            "BatchNorm2D",
            "BatchNorm3D",
            "SyncBatchNorm",
            "InstanceNorm1D",
            "InstanceNorm2D",
            "InstanceNorm3D",
        )
    },
}
"""what is kept in another form"""
_ASSIGNED: Final = r"\bself\.(\w+)\b(?:: [^=\n]+)? =[^=]"
_BUFFER: Final = r"""register_buffer\(\s*["'](\w+)["']"""
_REGISTERED: Final = r"""register_(?:buffer|parameter)\(\s*["'](\w+)["']"""


@cache
def list_settings(kind: type) -> frozenset[str]:
    """Return the attributes that a class of layers gives its layers, its methods included."""
    return _find_named(kind, _ASSIGNED) | _find_named(kind, _REGISTERED) | frozenset(dir(kind))


@cache
def _list_buffers(kind: type) -> frozenset[str]:
    """Return the buffers that a class of layers registers, or is annotated to have."""
    return _find_named(kind, _BUFFER)


def _find_named(kind: type, pattern: str) -> frozenset[str]:
    """Return the names that a pattern finds in the source of a class and of its base classes."""
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        with suppress(OSError, TypeError):  # a class without source says nothing
            found |= set(re.findall(pattern, inspect.getsource(base)))
    return frozenset(found)


def write_setting(name: str, theirs: type, target: str, ours: type, values: Iterable[Any]) -> str:
    """Return the text that reads a setting of Paddle's layer `self`, "" to leave the name as it is.

    target: the dotted name of the class `ours`. values: what was read of PyTorch's layers: a setting that
    Paddle's do not have becomes its value, if that was always the same; a buffer becomes None.
    """
    if name not in list_settings(theirs):
        return ""
    if (target, name) in _COMPUTED:
        return _COMPUTED[target, name]
    known = list_settings(ours)
    for one in (name, f"_{name}", _RENAMED.get(name, "")):
        if one in known:
            return "" if one == name else f"self.{one}"
    if name in _list_buffers(theirs):
        return "None"
    texts = {
        repr(value) if value is None or isinstance(value, bool | int | float | str) else ""
        for value in values
    }
    return texts.pop() if len(texts) == 1 else ""
