"""The optimizer, the schedule and the losses of a file where nothing ran, proven on values of their own.

A training script's `main` is not run: it reads data. The arguments of its constructors are known all the
same where they are constants, options of argparse with their defaults, or fields of a configuration.
"""

import ast
import math
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from reprod_align.explain.code import Code, dotted, list_imports
from reprod_align.porting.calls.names import find_object
from reprod_align.porting.calls.record import Fact
from reprod_align.porting.calls.steps import draw_parameters, take_steps
from reprod_align.porting.calls.trial import note_runs
from reprod_align.porting.calls.values import Built, RecordedCall, is_close

import numpy as np

OPTIMIZERS: Final = "torch.optim."
SCHEDULES: Final = "torch.optim.lr_scheduler."
_MODULES: Final = {"math": math, "numpy": np}
_BATCHES: Final = {
    "CrossEntropyLoss": "logits classes", "cross_entropy": "logits classes",
    "NLLLoss": "logs classes", "nll_loss": "logs classes",
    "BCELoss": "chances chances", "binary_cross_entropy": "chances chances",
    "BCEWithLogitsLoss": "logits chances", "binary_cross_entropy_with_logits": "logits chances",
    "MSELoss": "logits numbers", "mse_loss": "logits numbers",
    "L1Loss": "logits numbers", "l1_loss": "logits numbers",
    "SmoothL1Loss": "logits numbers", "smooth_l1_loss": "logits numbers",
    "HuberLoss": "logits numbers", "huber_loss": "logits numbers",
    "KLDivLoss": "logs chances", "kl_div": "logs chances",
}  # fmt: skip
"""loss -> the outputs and the targets that it is tried on"""
_EPOCHS = 12
_PARAMETERS, _OPTIMIZER = "model.parameters()", "optimizer"


@dataclass(frozen=True)
class Training:
    """How both sides make an optimizer of `model`, or a schedule of `optimizer`."""

    torch: str
    """the expression"""
    paddle: str
    near: bool
    """whether the steps agree to float32's precision alone"""
    imports: tuple[str, ...] = ()
    """statements that both need"""


class Constants:
    """What the names of a file stand for where nothing runs: constants, argparse's defaults, fields."""

    def __init__(self, code: Code) -> None:
        """Read them; a name that is given a value twice, or is an argument's, is none."""
        self._imports = list_imports(code.tree)
        self._options: dict[str, ast.expr] = {}
        self._constants: dict[str, ast.expr] = {}
        self._records: dict[str, dict[str, ast.expr]] = {}
        """what the attributes of a name stand for: argparse's options, a configuration's fields"""
        self._stored = {
            dotted(one)
            for one in code.nodes
            if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
        }
        self._classes = {one.name: one for one in code.nodes if isinstance(one, ast.ClassDef)}
        bound = [one.arg for one in code.nodes if isinstance(one, ast.arg)] * 2
        for node in code.nodes:
            if isinstance(node, ast.Call) and dotted(node.func).endswith(".add_argument"):
                self._read_option(node)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound.append(node.id)
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, node.value
                if isinstance(value, ast.Constant):
                    self._constants[name] = value
        for name in set(self._constants):
            if bound.count(name) > 1:
                del self._constants[name]
        handed = [*_list_handed(code.nodes), *((name, ast.Name(name)) for name in self._classes)]
        known = -1
        while known < (known := len(self._records)):  # what is handed on from name to name
            for target, value in handed:
                if (fields := self._list_fields(value)) is not None:
                    self._records.setdefault(target, fields)

    def _read_option(self, node: ast.Call) -> None:
        words = [one.value for one in node.args if isinstance(one, ast.Constant)]
        given = {one.arg: one.value for one in node.keywords}
        long = [one for one in words if isinstance(one, str) and one.startswith("--")]
        name = given.get("dest", ast.Constant((long or words or [""])[0]))
        if isinstance(name, ast.Constant) and "default" in given:
            self._options[str(name.value).lstrip("-").replace("-", "_")] = given["default"]

    def _list_fields(self, node: ast.expr | None) -> dict[str, ast.expr] | None:
        """Return what the attributes of an expression stand for, None where that is not known."""
        if isinstance(node, ast.Name | ast.Attribute) and dotted(node) in self._records:
            return self._records[dotted(node)]
        call = node.value if isinstance(node, ast.Subscript) else node  # parse_known_args()[0]
        method = getattr(getattr(call, "func", None), "attr", "")
        if method in ("parse_args", "parse_known_args"):
            return self._options
        name = dotted(getattr(node, "func", node)) if node else ""
        made = self._classes.get(name)
        if made is None:
            return self._records.get(f"{name}()") if isinstance(node, ast.Call) else None
        fields = {target: value for one in made.body for target, value in _list_targets(one)}
        return fields | {one.arg: one.value for one in getattr(node, "keywords", ()) if one.arg}

    def settle(self, node: ast.expr) -> ast.expr | None:
        """Return an expression with its names replaced; None where one of them is not known."""
        settling = _Settling(self._find, set(_list_bound(node)) | self._modules.keys())
        made = settling.visit(ast.parse(ast.unparse(node), mode="eval").body)
        return None if settling.failed else made

    @property
    def _modules(self) -> dict[str, str]:
        return {name: full for name, full in self._imports.items() if full in _MODULES}

    @property
    def space(self) -> dict[str, Any]:
        """The modules that a settled expression may read, by the file's names for them."""
        return {name: _MODULES[full] for name, full in self._modules.items()}

    def list_imports(self, node: ast.expr) -> tuple[str, ...]:
        """Return the statements that import the modules which a settled expression reads."""
        read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        return tuple(
            f"import {full} as {name}" for name, full in self._modules.items() if name in read
        )

    def _find(self, node: ast.Name | ast.Attribute) -> ast.expr | None:
        if isinstance(node, ast.Name):
            return self._constants.get(node.id)
        held, _, name = dotted(node).rpartition(".")
        if dotted(node) in self._stored:
            return None
        return self._records.get(held, {}).get(name)


def _list_targets(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield what a statement gives a value: `a.b = value`, `a: int = value`, `a, rest = value`."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
        yield dotted(target.elts[0] if isinstance(target, ast.Tuple) else target), node.value


def _list_handed(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """Yield what names are given by assignments and calls; "f()" is given what the function f returns."""
    functions = {one.name: one for one in nodes if isinstance(one, ast.FunctionDef)}
    for node in nodes:
        yield from _list_targets(node)
        called = functions.get(dotted(node.func)) if isinstance(node, ast.Call) else None
        if called is not None:
            yield from zip((one.arg for one in called.args.args), node.args, strict=False)  # type: ignore[attr-defined]
    for name, function in functions.items():
        for node in ast.walk(function):
            if isinstance(node, ast.Return) and node.value is not None:
                yield f"{name}()", node.value


class _Settling(ast.NodeTransformer):
    def __init__(self, find: Callable[[Any], ast.expr | None], known: set[str]) -> None:
        self.find, self.known, self.failed = find, known, False
        self.within: list[str] = []
        """the names whose values are being settled"""

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._replace(node) or self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Store) or node.id in self.known:
            return node
        found = self._replace(node)
        self.failed = self.failed or found is None
        return found or node

    def _replace(self, node: ast.Name | ast.Attribute) -> ast.AST | None:
        """Return what a name stands for, settled itself; None where it is not known, or is read by itself."""
        name, found = dotted(node), self.find(node)
        if found is None or name in self.within:
            return None
        self.within.append(name)
        settled: ast.AST = self.visit(deepcopy(found))
        self.within.pop()
        return settled


def _list_bound(node: ast.expr) -> Iterator[str]:
    """Yield the arguments of the lambdas in an expression."""
    for one in ast.walk(node):
        if isinstance(one, ast.arg):
            yield one.arg


def settle_call(node: ast.Call, public: str, constants: Constants) -> ast.Call | None:
    """Return the call that makes an optimizer of `model` or a schedule of `optimizer`, its arguments settled.

    None where they are not known, or where an optimizer is given anything but all parameters of a model.
    """
    is_schedule = public.startswith(SCHEDULES)
    if not node.args or any(one.arg is None for one in node.keywords):
        return None
    first, *rest = node.args
    if not is_schedule and not (
        isinstance(first, ast.Call)
        and isinstance(first.func, ast.Attribute)
        and first.func.attr == "parameters"
        and not first.args
    ):
        return None
    settled = [constants.settle(one) for one in rest]
    named = [(one.arg, constants.settle(one.value)) for one in node.keywords]
    if None in settled or any(value is None for _, value in named):
        return None
    given = ", ".join([
        _OPTIMIZER if is_schedule else _PARAMETERS,
        *(ast.unparse(one) for one in settled if one is not None),
        *(f"{name}={ast.unparse(value)}" for name, value in named if value is not None),
    ])  # fmt: skip
    made = ast.parse(f"{public}({given})", mode="eval").body
    return made if isinstance(made, ast.Call) else None


def prove_optimizer(torch_text: str, paddle_text: str, space: dict[str, Any]) -> Training | None:
    """Return the two expressions if their steps give the same parameters; both read `model`."""
    import paddle
    import torch

    reference = draw_parameters()
    with _run_in_float64():
        try:
            made = [paddle.create_parameter(list(one.shape), "float64") for one in reference]
            for held, one in zip(made, reference, strict=True):
                held.set_value(one.detach().numpy())
            sides = (
                (torch_text, "torch", torch, torch.tensor, reference),
                (paddle_text, "paddle", paddle, paddle.to_tensor, made),
            )
            theirs, ours = (
                take_steps(
                    eval(text, {**space, name: framework, "model": _Model(held)}), held, to_tensor
                )
                for text, name, framework, to_tensor, held in sides
            )
        except Exception:  # an argument that one of them does not take
            return None
    return _judge(torch_text, paddle_text, [*zip(ours, theirs, strict=True)])


def prove_schedule(torch_text: str, paddle_text: str, space: dict[str, Any]) -> Training | None:
    """Return the two expressions if they lead an optimizer the same way; both read `optimizer`.

    By its learning rates, and by its parameter, on which a momentum that the schedule changes shows.
    """
    import paddle
    import torch

    with _run_in_float64():
        try:
            start = torch.ones(1, dtype=torch.float64)
            held, made = torch.nn.Parameter(start), paddle.create_parameter([1], "float64")
            made.set_value(np.ones(1))
            theirs = torch.optim.SGD([held], 0.1, momentum=0.5)
            ours = paddle.optimizer.Momentum(0.1, momentum=0.5, parameters=[made])
            schedules = [
                eval(torch_text, {**space, "torch": torch, "optimizer": theirs}),
                eval(paddle_text, {**space, "paddle": paddle, "optimizer": ours}),
            ]
            pairs = []
            for _ in range(_EPOCHS):
                pairs.append((np.array(ours.get_lr()), np.array(theirs.param_groups[0]["lr"])))
                for parameter, optimizer in ((held, theirs), (made, ours)):
                    parameter.sum().backward()
                    optimizer.step()
                    optimizer.zero_grad()
                for one in schedules:
                    one.step()
                pairs.append((made.numpy(), held.detach().numpy().copy()))
        except Exception:  # an argument that one of them does not take
            return None
    return _judge(torch_text, paddle_text, pairs)


class _Model(types.SimpleNamespace):
    def __init__(self, parameters: list[Any]) -> None:
        super().__init__(parameters=lambda: parameters)


def _judge(torch_text: str, paddle_text: str, pairs: list[tuple[Any, Any]]) -> Training | None:
    for near in (False, True):
        if all(is_close(made, expected, near) for made, expected in pairs):
            return Training(torch_text, paddle_text, near)
    return None


def record_loss(node: ast.Call, public: str, constants: Constants) -> Fact | None:
    """Return what a loss gives on a batch of its own; None for what is none, or has unknown arguments.

    A function's first two arguments are that batch, whatever the file gives it.
    """
    kinds = _BATCHES.get(public.rpartition(".")[2])
    is_layer = public.startswith("torch.nn.") and not public.startswith("torch.nn.functional.")
    if (
        kinds is None
        or not public.startswith("torch.nn.")
        or len(node.args) < (0 if is_layer else 2)
    ):
        return None
    settled = [constants.settle(one) for one in node.args[0 if is_layer else 2 :]]
    named = {one.arg or "": constants.settle(one.value) for one in node.keywords}
    if "" in named or None in settled or None in named.values():
        return None
    try:
        rest = [_evaluate(one, constants) for one in settled]
        keywords = {name: _evaluate(one, constants) for name, one in named.items()}
        batch = _draw_batch(kinds)
        if "ignore_index" in keywords:  # what is asked for is tried
            batch[1][0] = keywords["ignore_index"]
        return _run_loss(public, batch, rest, keywords, is_layer)
    except Exception:  # an argument that PyTorch's does not take
        return None


def _evaluate(node: ast.expr | None, constants: Constants) -> Any:
    assert node is not None
    return eval(ast.unparse(node), constants.space)


def _draw_batch(kinds: str) -> tuple[Any, Any]:
    """Return what a loss takes: outputs, whose gradients are asked for, and targets."""
    import torch

    drawn = torch.tensor(np.random.default_rng(0).standard_normal((6, 5)))
    outputs, targets = kinds.split()
    made = {"logits": drawn, "logs": drawn.log_softmax(1), "chances": drawn.sigmoid()}[outputs]
    wanted = {
        "classes": torch.arange(6) % 5,
        "chances": drawn.flip(0).sigmoid(),
        "numbers": drawn.flip(0),
    }
    return made.detach().requires_grad_(), wanted[targets]


def _run_loss(
    public: str, batch: tuple[Any, Any], rest: list[Any], keywords: dict[str, Any], is_layer: bool
) -> Fact:
    """Return what was seen of a loss that is called once, as if it had run in the file."""
    import torch

    function = find_object(public)
    if is_layer:
        layer, built = function(*rest, **keywords).eval(), Built(())
        with note_runs({id(layer): (layer, built)}):
            layer(*batch)
        call = RecordedCall(tuple(rest), keywords, built, default_dtype=torch.float64)
    else:
        result = function(*batch, *rest, **keywords).detach()
        call = RecordedCall((*batch, *rest), keywords, result, default_dtype=torch.float64)
    return Fact({public}, [call])


@contextmanager
def _run_in_float64() -> Iterator[None]:
    import paddle

    kept = paddle.get_default_dtype()
    paddle.set_default_dtype("float64")
    try:
        with paddle.enable_grad():
            yield
    finally:
        paddle.set_default_dtype(kept)


def write_trainings(trainings: Sequence[Training], port: str) -> str:
    """Return the functions of a pair file that make the optimizer and the schedule of both sides.

    "" where there is not one optimizer whose steps are proven. port: the name of the port's module.
    """
    schedules = [one for one in trainings if one.torch.startswith(SCHEDULES)]
    optimizers = [one for one in trainings if one not in schedules]
    if len(optimizers) != 1:
        return ""
    rows = [("optimizer", "model", optimizers[0])]
    rows += [("scheduler", "optimizer", one) for one in schedules if len(schedules) == 1]
    sides = [
        (f"{side}_{what}({given})", [*one.imports, f"import {side}"], text)
        for what, given, one in rows
        for side, text in (("torch", one.torch), ("paddle", one.paddle))
    ]
    return "".join(_write_function(port, *one) for one in sides)


def _write_function(port: str, head: str, imports: list[str], text: str) -> str:
    """Return a function of the pair file that returns an expression."""
    if not text.startswith(("torch.", "paddle.")):  # a definition of the port's own
        imports = [*imports[:-1], f"from {port} import {text.partition('(')[0]}"]
    what = head.partition("(")[0].partition("_")[2]
    lines = [f'"""Return the {what} of the training script."""', *imports, "", f"return {text}"]
    return "\n\n" + "\n".join([f"def {head}:", *(f"    {one}".rstrip() for one in lines), ""])
