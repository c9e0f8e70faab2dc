"""What a call does, by one name for both frameworks."""

from collections.abc import Mapping
from typing import Final

from reprod_align.model.source.operation import Operation

_NAMES: Final[Mapping[str, str]] = {
    "truediv": "divide", "div": "divide", "rtruediv": "divide", "true_divide": "divide",
    "sub": "subtract", "rsub": "subtract", "mul": "multiply", "rmul": "multiply", "radd": "add",
    "permute": "transpose", "swapaxes": "transpose", "T": "transpose", "mT": "transpose", "t": "transpose",
    "view": "reshape", "flatten": "reshape", "unflatten": "reshape", "cat": "concat",
    "bmm": "matmul", "mm": "matmul", "rmatmul": "matmul", "to": "cast", "type": "cast", "astype": "cast",
    "float": "cast", "double": "cast", "long": "cast", "clamp": "clip", "neg": "scale", "rpow": "pow",
    "expand_as": "expand", "broadcast_to": "expand", "amax": "max", "amin": "min",
    "less": "less_than", "lt": "less_than", "gt": "greater_than", "le": "less_equal", "ge": "greater_equal",
    "eq": "equal", "ne": "not_equal", "invert": "logical_not",
}  # fmt: skip


def name_of(operation: Operation) -> str:
    """Return what a call does, by one name for both frameworks and for operator and function."""
    name = operation.name.strip("_")
    return _NAMES.get(name, name)
