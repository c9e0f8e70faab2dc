"""The framework calls that the user's own code makes inside a module, with their source lines.

Recorded only where a difference has been found: every tensor that goes in or comes out is copied.
"""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from reprod_align.base.blocks import Array
from reprod_align.base.text import parent
from reprod_align.base.tree import leaves
from reprod_align.model.source import (
    LOSS,
    RETURN,
    Operation,
    SourceLine,
    UserCode,
    Wanted,
    is_own,
    line_of,
    skip_own,
)
from reprod_align.model.store import Shelf
from reprod_align.model.trace import Call
from reprod_align.randomness import CallKey

_PLAIN = (bool, int, float, complex, str, type(None))
_MOST_CALLERS = 6  # a module's own helpers, and the module around it

_Taken = tuple[list[Array], list[Operation | None]]
"""copies of the tensors that a call takes, and the operations that gave them"""


class _CallSite(NamedTuple):
    """Where a call is written."""

    source: SourceLine
    frame: FrameType
    module: str
    """see `Operation.module`; the next likewise"""
    user: SourceLine | None


class OperationRecorder:
    """Records the operations of one run of one side."""

    def __init__(self, framework: ModuleType, wanted: Wanted) -> None:
        """Record what `wanted` says; framework: the backend's `side`."""
        self.operations: list[Operation] = []
        self.code = UserCode(framework.PACKAGES, framework.MODELS)
        self._fw, self.wanted = framework, wanted
        self._shelf, self._busy = Shelf(), False
        self._open: list[CallKey] = []
        self._begun: dict[CallKey, tuple[_CallSite, _Taken, Any] | None] = {}
        self._returned: _CallSite | None = None
        self._base = inspect.getfile(framework.Module)
        self._layers: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._stock: set[int] = set()
        self._made: dict[
            int, tuple[Any, Operation]
        ] = {}  # tensors stay, so that no id is given twice

    @contextmanager
    def on(self) -> Iterator[None]:
        """Hear every call in the block."""
        before = sys.gettrace()
        with self._fw.intercept_calls(self):
            sys.settrace(self._trace)
            try:
                yield
            finally:
                sys.settrace(before)

    def know(self, modules: Mapping[str, Any]) -> None:
        """Take the model's modules, by path."""
        self._layers = dict(modules)
        inside = {parent(path) for path in modules}
        stock = self.wanted.stock & inside
        self._names = {id(module): path for path, module in modules.items()}
        self._stock = {one for one, path in self._names.items() if path in stock}

    # ---------------------------------------------------------------- functions

    def record(
        self, name: str, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]
    ) -> Any:
        """Make the call, and keep it if the user's code in a wanted module made it."""
        place = None if self._busy else self._place()
        found = None if place is None else self._find_place()
        if place is None or found is None:
            return function(*args, **kwargs)
        self._busy = True
        try:
            inputs = self._read((args, kwargs))
            result = function(*args, **kwargs)
            changed = args[0] if result is None and args else result  # such as of __setitem__
            if inputs is not None:
                self._keep(name, found, place, inputs, changed, (args, kwargs))
        finally:
            self._busy = False
        return result

    def _keep(
        self,
        name: str,
        found: _CallSite,
        place: CallKey,
        inputs: _Taken,
        result: Any,
        given: Any,
        child: CallKey | None = None,
    ) -> None:
        results = leaves(result, self._fw.is_tensor).values()
        outputs = self._read(result)
        if not results or outputs is None:
            return
        source, frame, module, user = found
        keywords = given[1] if isinstance(given[1], Mapping) else {}
        operation = Operation(
            name,
            source,
            place,
            inputs[0],
            outputs[0],
            differentiable=any(self._fw.carries_gradient(tensor) for tensor in results),
            constants=() if child else list(_list_constants(given)),
            names=_name_constants(source.expression, frame),
            child=child,
            keywords={k: value for k, value in keywords.items() if isinstance(value, _PLAIN)},
            tensors=self._name_tensors(source.expression, frame, given),
            called=_name_called(source.expression),
            makers=inputs[1],
            callers=[*self._list_callers(frame)],
            module=module,
            user=user,
        )
        if name != RETURN:
            self._made |= {id(tensor): (tensor, operation) for tensor in results}
        self.operations.append(operation)

    def _list_callers(self, frame: FrameType) -> Iterator[SourceLine]:
        above = self.code.find_calling_frame(frame.f_back)
        for _ in range(_MOST_CALLERS):
            if above is None:
                break
            yield line_of(above)
            above = self.code.find_calling_frame(above.f_back)

    def _name_tensors(self, expression: str, frame: FrameType, given: Any) -> dict[str, int]:
        """Return the variables in an expression that hold one of the given tensors: which one."""
        tensors = [*enumerate(leaves(given, self._fw.is_tensor).values())]
        places = {id(one): at for at, one in reversed(tensors)}  # the first of equal ones
        held = {name: id(self._look_up(name, frame)) for name in _list_names(expression)}
        return {name: places[one] for name, one in held.items() if one in places}

    def _look_up(self, name: str, frame: FrameType) -> Any:
        """Return the object that a variable, or an attribute of one, stands for; None if there is none."""
        head, *rest = name.split(".")
        value = frame.f_locals.get(head)
        for part in rest:
            own = self._fw.contents(value)[:2] if self._fw.is_module(value) else ()
            places = getattr(value, "__dict__", {}), *own
            value = next((held[part] for held in places if part in held), None)
        return value

    def _place(self) -> CallKey | None:
        """Return the wanted call whose own code is running; None if another's is."""
        inner = next((key for key in reversed(self._open) if key[0] in self.wanted.modules), LOSS)
        return inner if inner in self.wanted.calls else None

    def _read(self, value: Any) -> _Taken | None:
        """Return what is in `value`; None if a tensor holds no numbers, such as one under vmap."""
        try:
            return self._take(value)
        except RuntimeError:
            return None

    def _find_place(self) -> _CallSite | None:
        """Return where the call under way is written: by the user, or in a layer of the framework's."""
        frame = skip_own(sys._getframe(1))
        inner: FrameType | None = None
        while frame is not None and not is_own(frame):
            holder = id(frame.f_locals.get("self"))
            stock = holder in self._stock
            if stock and inner is None and self._is_layer_code(frame):
                inner, module = frame, self._names[holder]
            elif not stock and self.code.holds(frame.f_code.co_filename):
                source = line_of(frame)
                if inner is not None:
                    return _CallSite(line_of(inner), inner, module, source)
                return _CallSite(source, frame, self._names.get(holder, ""), None)
            frame = frame.f_back
        return None

    def _is_layer_code(self, frame: FrameType) -> bool:
        """Tell whether a frame is not of what every layer inherits, nor of a container."""
        file = frame.f_code.co_filename
        return file != self._base and not file.endswith("container.py")

    def _take(self, value: Any) -> _Taken:
        tensors = leaves(value, self._fw.is_tensor).values()
        makers = [self._made.get(id(tensor), (None, None))[1] for tensor in tensors]
        return [self._copy(tensor) for tensor in tensors], makers

    def _copy(self, tensor: Any) -> Array:
        return self._shelf.keep(self._fw.view(tensor))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing in the block."""
        self._busy, busy = True, self._busy
        try:
            yield
        finally:
            self._busy = busy

    # ---------------------------------------------------------------- modules

    def begin(self, call: Call, given: Any) -> None:
        """Note that a module was called; given: its arguments as they arrived."""
        place = None if self._busy else self._place()
        self._open.append(call.key)
        if place is not None and call.path in self.wanted.modules:
            found = self._find_place()
            with self.paused():
                self._begun[call.key] = None if found is None else (found, self._take(given), given)

    def end(self, call: Call, output: Any, passed: Any) -> None:
        """Note that a module returned `output`; passed: what its caller is given, which a pin may replace."""
        if call.key in self.wanted.calls and self._returned is not None:
            with self.paused():
                taken = self._take(output)
                self._keep(RETURN, self._returned, call.key, taken, output, ((output,), {}))
            self._returned = None
        while self._open and self._open.pop() != call.key:
            pass
        begun = self._begun.pop(call.key, None)
        place = None if self._busy else self._place()
        if begun is not None and place is not None:
            found, inputs, given = begun
            with self.paused():
                self._keep(call.path, found, place, inputs, passed, given, call.key)

    # ---------------------------------------------------------------- return statements

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_name == "forward" and self._open and self._is_wanted(frame):
            frame.f_trace_lines = False
            return self._note_return
        return None

    def _is_wanted(self, frame: FrameType) -> bool:
        """Tell whether a frame is of the forward method of a wanted module."""
        key, holder = self._open[-1], frame.f_locals.get("self")
        written = self.code.holds(frame.f_code.co_filename) or id(holder) in self._stock
        fits = holder is None or holder is self._layers.get(key[0])
        return key in self.wanted.calls and written and fits

    def _note_return(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "return":
            self._returned = self._find_place()


def _list_constants(value: Any) -> Iterator[Any]:
    """Yield the plain values in arguments, in order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, slice):
        value = (value.start, value.stop, value.step)
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from _list_constants(part)
    elif isinstance(value, _PLAIN):
        yield value


def _name_constants(expression: str, frame: FrameType) -> dict[str, Any]:
    """Return the names and dotted attributes in an expression that stand for a plain value."""
    found = {}
    for name in _list_names(expression):
        head, *rest = name.split(".")
        value = frame.f_locals.get(head, frame.f_globals.get(head))
        for part in rest:
            value = getattr(value, "__dict__", {}).get(part)
        if isinstance(value, _PLAIN) and value is not None:
            found[name] = value
    return found


def _name_called(expression: str) -> str:
    tree = _parse(expression)
    return ast.unparse(tree.func) if isinstance(tree, ast.Call) else ""


@lru_cache(maxsize=4096)
def _parse(expression: str) -> ast.expr | None:
    try:
        return ast.parse(expression.strip().removeprefix("return "), mode="eval").body
    except SyntaxError:
        return None


@lru_cache(maxsize=4096)
def _list_names(expression: str) -> Sequence[str]:
    tree = _parse(expression)
    if tree is None:
        return ()
    nodes = [node for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name))]
    return tuple(dict.fromkeys(ast.unparse(node) for node in nodes))
