"""Hears every Paddle function that is called, and requests for float32. `backends.torch.calls` is the twin.

Paddle has no hook for this, so the functions are replaced where a user can find them: methods of
Tensor, public functions wherever a loaded module holds them, and the operators below both, which a
function that was put away in a dict or in a layer still calls.

Norms, softmaxes and rotary tables often compute in float32 for an input of any dtype. Its rounding
hides small differences; with float64 in its place, the same code shows them.
"""

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial, wraps
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Final

from reprod_align.backends import replace_attribute
from reprod_align.backends.paddle.private import OPERATORS
from reprod_align.backends.versions import look_up
from reprod_align.model.recorder import OperationRecorder

import numpy as np
import paddle

_PUBLIC: Final = (
    "paddle", "paddle.nn.functional", "paddle.linalg", "paddle.fft", "paddle.signal",
    "paddle.incubate.nn.functional", "paddle.compat", "paddle.compat.nn.functional", "paddle.tensor",
    "paddle.special", "paddle.vision.ops", "paddle.geometric",
)  # fmt: skip
_NO_OPERATION: Final = {
    "backward", "register_hook", "clear_gradient", "clear_grad", "clear_gradient_", "numpy", "item",
    "tolist", "dim", "ndimension", "element_size", "is_floating_point", "is_complex", "is_integer",
    "numel", "nelement", "size", "get_tensor", "value", "set_value", "to_dense_", "__len__",
    "__bool__", "__float__", "__int__", "__index__", "__array__", "__hash__", "__repr__", "__str__",
    "__format__", "__init__", "__new__", "__class__", "__getattribute__", "__setattr__",
    "__delattr__", "__dir__", "__doc__", "__reduce__", "__reduce_ex__", "__sizeof__",
    "__subclasshook__", "__init_subclass__", "__deepcopy__", "__copy__", "__dlpack__",
    "__dlpack_device__", "__contains__", "__iter__", "__nonzero__", "__long__", "__class_getitem__",
    "__getstate__", "__setstate__", "__cuda_array_interface__", "__array_priority__",
}  # fmt: skip
Function = Callable[..., Any]
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType)  # some of paddle.tensor are compiled ones


@contextmanager
def intercept_calls(recorder: OperationRecorder) -> Iterator[None]:
    """Let `recorder.record` make every call of a Paddle function in the block: the outermost ones."""
    replaced: list[tuple[Any, str, Any]] = []
    _listening.append(recorder)
    try:
        for owner, name, own in _find_places():
            replacement = _hear(name, own)
            replaced.append((owner, name, own))
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, own in reversed(replaced):
            setattr(owner, name, own)
        _listening.pop()


_listening: Final[list[OperationRecorder]] = []
"""who hears the calls: the last one"""
_heard: Final[dict[tuple[str, int], tuple[Any, Any]]] = {}
"""name, id -> a function of Paddle's and what takes its place: making thousands takes time"""


def _hear(name: str, own: Any) -> Any:
    """Return what takes a function's place; ours, which stand in for a draw, are made for one run."""
    if (getattr(own, "__module__", None) or "").startswith("reprod_align"):
        return _make_hearing(name, own)
    known = _heard.get((name, id(own)))
    if known is None:
        known = _heard[name, id(own)] = own, _make_hearing(name, own)  # kept: its id stays its own
    return known[1]


def _make_hearing(name: str, own: Any) -> Any:
    if isinstance(own, property):
        return property(lambda tensor: _listening[-1].record(name, own.__get__, (tensor,), {}))

    @wraps(own)
    def heard(*args: Any, **kwargs: Any) -> Any:
        return _listening[-1].record(name, own, args, kwargs)

    return heard


def _find_places() -> Iterator[tuple[Any, str, Any]]:
    """Yield what is to be replaced: its owner, its name there, and what it is now."""
    for name in _list_method_names():
        yield paddle.Tensor, name, _look_up(name)
    public = {id(function) for function in _list_public_functions()}
    held_twice = paddle.tensor  # `paddle.tensor.triu` is an object's, not the module's
    for module in [*map(sys.modules.get, _PUBLIC), held_twice, *_list_user_modules()]:
        if module is not None and not public.isdisjoint(map(id, vars(module).values())):
            held = [(name, one) for name, one in vars(module).items() if id(one) in public]
            yield from ((module, name, one) for name, one in held)
    for name, one in list(vars(OPERATORS).items()):
        if callable(one) and not name.startswith("_") and not isinstance(one, type):
            yield OPERATORS, name, one


def _look_up(name: str) -> Any:
    """Return a method of Tensor as its class holds it."""
    return next(vars(kind)[name] for kind in paddle.Tensor.__mro__ if name in vars(kind))


@lru_cache(maxsize=1)
def _list_method_names() -> tuple[str, ...]:
    """Return the names of Tensor's methods, operators and properties that compute."""
    tensor = paddle.Tensor
    found = [name for name in dir(tensor) if name not in _NO_OPERATION and not _is_internal(name)]
    kinds = FunctionType, type(object.__repr__), type(str.join), property
    return tuple(n for n in found if isinstance(inspect.getattr_static(tensor, n), kinds))


def _is_internal(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _list_public_functions() -> Iterator[Function]:
    for module in map(sys.modules.get, _PUBLIC):
        for name, one in vars(module).items() if module is not None else ():
            own = getattr(one, "__module__", None) or ""
            known = own.startswith(("paddle", "reprod_align"))  # ours stand for those that draw
            if isinstance(one, _FUNCTIONS) and known and name[0] != "_":
                yield one


def _list_user_modules() -> Iterator[ModuleType]:
    """Yield the loaded modules that may hold a function of Paddle's by a name of their own."""
    for name, module in list(sys.modules.items()):
        if not name.startswith(("paddle.", "torch", "numpy", "reprod_align")) and name != "paddle":
            if isinstance(module, ModuleType) and "__file__" in vars(module):
                yield module


_FLOAT32 = paddle.float32, "float32", "paddle.float32"
_OPERATORS = ("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "eye", "empty")
_OF_INTEGERS = (
    *((paddle.Tensor, f"__{side}{name}__") for name in ("add", "sub", "mul", "div", "truediv", "pow",
      "mod", "floordiv") for side in ("", "r")),
    *((OPERATORS, name) for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "clip", "cos",
      "cosh", "digamma", "divide", "erf", "erfinv", "exp", "expm1", "lgamma", "log", "log10", "log1p",
      "log2", "logsumexp", "reciprocal", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh")),
)  # fmt: skip
"""what Paddle computes in float32 for integers, whatever the default dtype is; PyTorch asks the default"""
_EXACT = "one_hot"
"""its numbers are float32 whatever the default dtype is, and nothing in them is rounded"""


@contextmanager
def float32_requests(note: Callable[..., None], answered: bool) -> Iterator[None]:
    """Call `note` at each request for float32 in the block; `answered`: give float64 in its place.

    `note` gets what the call returns, and what it takes.

    Seen are dtypes handed to the operators that all casts and new tensors come from, and to
    `paddle.to_tensor`, and operators that make float32 of integers and round on the way. Zeros and
    ones become float64 in any case: the number stays the same, and float32 beside float64 would raise.
    """
    with ExitStack() as stack:
        for owner, name in (*((OPERATORS, name) for name in _OPERATORS), (paddle, "to_tensor")):
            if (own := look_up(owner, name)) is None:
                continue  # a later version's operator
            seen = partial(_see, own, note, answered)
            stack.enter_context(replace_attribute(owner, name, seen))
        for owner, name in _OF_INTEGERS:
            if (own := look_up(owner, name)) is None:
                continue
            made = _see_integers(own, note, answered)
            stack.enter_context(replace_attribute(owner, name, made))
        if (exact := look_up(OPERATORS, _EXACT)) is not None:
            stack.enter_context(
                replace_attribute(OPERATORS, _EXACT, lambda *args: _make_float64(exact(*args)))
            )
        yield


def _see_integers(
    function: Callable[..., Any], note: Callable[..., None], answered: bool
) -> Callable[..., Any]:
    """Return the function as a method too, which `partial` is not."""

    def compute(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        if not _is_of_integers(made, args):
            return made
        wide = function(*map(_make_float64, args), **kwargs)
        if not np.array_equal(made.numpy(), wide.numpy(), equal_nan=True):
            note(wide, *args)
        return wide if answered else made

    return compute


def _is_of_integers(made: Any, args: tuple[Any, ...]) -> bool:
    """Tell whether a float32 was made of integers alone; numbers that are no tensors have no dtype."""
    if not isinstance(made, paddle.Tensor) or made.dtype != paddle.float32:
        return False
    return not any(isinstance(one, paddle.Tensor) and one.is_floating_point() for one in args)


def _make_float64(value: Any) -> Any:
    return value.astype("float64") if isinstance(value, paddle.Tensor) else value


def _see(
    function: Callable[..., Any],
    note: Callable[..., None],
    answered: bool,
    *args: Any,
    **kwargs: Any,
) -> Any:
    if not any(_is_float32(value) for value in (*args, *kwargs.values())):
        return function(*args, **kwargs)
    if answered:
        args = tuple(map(_widen, args))
        kwargs = {name: _widen(value) for name, value in kwargs.items()}
    made = function(*args, **kwargs)
    note(made, *args)
    return made


def _widen(value: Any) -> Any:
    return paddle.float64 if _is_float32(value) else value


def _is_float32(value: Any) -> bool:
    return isinstance(value, (str, paddle.dtype)) and value in _FLOAT32
