"""What was changed, as structure: facts that a finding states or not. No sentence is read here.

A fact is a word, or a word and a name: "argument:axis", "call:softmax", "setting:epsilon", "factor".
`NATURES` says what a call or an argument is about; names are PyTorch's or Paddle's, in one spelling.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

CUT: Final = "…"
"""what code ends with that a message has cut short"""
Verdict = Literal["right", "silent", "wrong"]

_SAME: Final[Mapping[str, str]] = {
    "dim": "axis", "dims": "axis", "eps": "epsilon", "layer_norm_eps": "epsilon", "perm": "axis",
    "permute": "transpose", "view": "reshape", "cat": "concat", "swish": "silu", "bmm": "matmul",
    "masked_fill": "where", "bias_attr": "bias", "rate": "p",
    "attn_mask": "mask", "attention_mask": "mask", "src_mask": "mask", "keepdims": "keepdim",
    "amax": "max", "amin": "min", "expand_as": "expand", "tile": "expand", "repeat": "expand",
}  # fmt: skip
NATURES: Final[Mapping[str, str]] = {
    "axis": "axis", "mask": "mask", "p": "dropout", "training": "dropout", "dropout": "dropout",
    "dropout1d": "dropout", "dropout2d": "dropout", "transpose": "layout", "reshape": "layout",
    "flatten": "layout", "squeeze": "layout", "unsqueeze": "layout", "roll": "layout", "flip": "layout",
    "split": "layout", "chunk": "layout", "t": "layout", "concat": "layout", "stack": "layout",
    "transpose_x": "layout", "transpose_y": "layout", "shape": "layout", "mean": "factor", "sum": "factor",
    "sqrt": "factor", "scale": "factor", "detach": "gradient", "stop_gradient": "gradient",
    "expand": "layout", "tril": "mask", "triu": "mask", "approximate": "function",
}  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """What a mutation changed."""

    element: str
    """argument, call, operator, summand, constant, setting, order, mask, branch, layout, tie, value"""
    name: str
    """of the argument, the call, the setting; "" where the element has none"""
    owner: str
    """the call to which it belongs; "" none"""
    facts: tuple[str, ...]
    """each of them names this cause"""


@dataclass(frozen=True)
class Told:
    """What a finding states, as structure."""

    facts: frozenset[str] = frozenset()
    expressions: tuple[str, ...] = ()
    """code of the port of which it says that it should be other code"""

    def __bool__(self) -> bool:
        """Tell whether anything is stated."""
        return bool(self.facts or self.expressions)


def make_cause(element: str, name: str = "", owner: str = "", facts: Iterable[str] = ()) -> Cause:
    """Return a cause with the facts that name it: its element, what it is about, further ones."""
    name, owner = canonical(name), canonical(owner)
    own = [f"{element}:{name}" if name else element, *_natures(name)]
    return Cause(element, name, owner, tuple(dict.fromkeys([*own, *facts])))


def canonical(name: str) -> str:
    """Return one spelling for PyTorch's and Paddle's names of the same."""
    name = name.rpartition(".")[2].lower().rstrip("_")
    return _SAME.get(name, name)


def judge(cause: Cause, expressions: Sequence[str], told: Told) -> Verdict:
    """Judge what a finding states.

    expressions: the mutated code that holds the change. A finding that shows one of them beside the
    reference's code names the change. A statement of anything else is wrong; none at all is silent.
    """
    if told.facts & set(cause.facts):
        return "right"
    if any(_is_code(shown, code) for shown in told.expressions for code in expressions):
        return "right"
    return "wrong" if told else "silent"


def _is_code(shown: str, code: str) -> bool:
    """Tell whether code that a finding shows, perhaps cut short, is this expression."""
    if shown.endswith(CUT):
        return _bare(code).startswith(_bare(shown.removesuffix(CUT)))
    return shown == code


def _bare(code: str) -> str:
    return re.sub(r"""[\s()'"]|,(?=\))""", "", code)


def facts_of_call(name: str) -> Iterator[str]:
    """Yield the facts that name a call which is missing, surplus, moved or another one."""
    name = canonical(name)
    yield f"call:{name}"
    yield from _natures(name)


def _natures(name: str) -> Iterator[str]:
    """Yield what a call or an argument of this name is about."""
    if name in NATURES:
        yield NATURES[name]
    yield from (part for part in ("dropout", "norm", "mask") if part in name)
