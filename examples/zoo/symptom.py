"""What a fault looks like from outside: lines of Paddle alone that print what is expected and got."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

IDS: Final = "ids = paddle.arange(3, 23).reshape([2, 10])"
CHANGE: Final = "round(float((first - second).abs().max()), 3)"
CHOICES: Final = "choices = paddle.arange(3, 63).reshape([2, 3, 10])"
FIND: Final = "layer = next(each for each in model.sublayers() if type(each).__name__ == '{0}')"
MENDED: Final = """\
for each in model.sublayers():  # report 26 mended, so that the model runs
    if type(each).__name__ == "RemBertSelfOutput":
        each.register_forward_pre_hook(lambda _, x: (x[0][0] if type(x[0]) is tuple else x[0], x[1]))
"""
MASK: Final = f"""\
{IDS}
other = paddle.concat([ids[:, :7], ids[:, 7:] + 30], 1)  # other words under the padding
mask = paddle.concat([paddle.ones([2, 7], "int64"), paddle.zeros([2, 3], "int64")], 1)
"""


@dataclass(frozen=True)
class Symptom:
    """A measurement on the port alone, and its value without the fault."""

    what: str
    """what is measured"""
    got: str
    """the expression that measures it"""
    expected: str
    """the expression of its value without the fault"""
    lines: str = ""
    """what runs before it"""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """of the configuration, beside those of the first pair that shows the fault"""
    make: str | None = None
    """what builds the port; None: the first pair's class, from its configuration"""


def read(got: str, expected: str, lines: str = "", what: str = "", **settings: Any) -> Symptom:
    """Return the symptom that an attribute, a shape or a number is another."""
    return Symptom(what or got, got, expected, lines, settings)


def count_tables(rows: int = 100, width: int = 32, **settings: Any) -> Symptom:
    """Return the symptom that a head is not the table to which the configuration ties it."""
    return read(
        f"sum(sorted(each.shape) == [{width}, {rows}] for each in model.parameters())",
        "1",
        what=f"parameters of the tied table's size, {rows} x {width}",
        **settings,
    )


def see_padding(run: str, lines: str = "") -> Symptom:
    """Return the symptom that what a mask hides changes the result; `run` is given the words as `x`."""
    return read(
        CHANGE,
        "0.0",
        f"{lines}{MASK}first, second = [{run} for x in (ids, other)]",
        "change of the output when the words under the padding change",
    )


def see_neighbour(run: str, lines: str = "") -> Symptom:
    """Return the symptom that an example's result depends on the others; `run` is given the words as `x`."""
    return read(
        CHANGE,
        "0.0",
        f"{IDS}\n{lines}first, second = [{run} for x in (ids, ids[:1])]",
        "change of the first example's output when the second one is taken away",
    )


def use_pooler(base: str, shape: str = "[2, 10]", **settings: Any) -> Symptom:
    """Return the symptom that a head reads the pooler's output."""
    lines = f"""\
{IDS.replace("[2, 10]", shape)}
first = model(ids)
for each in model.{base}.pooler.parameters():
    each.set_value(paddle.zeros_like(each))
second = model(ids)"""
    return read(
        CHANGE, "0.0", lines, "change of the logits when the pooler's weights become zero",
        initializer_range=0.5, **settings,
    )  # fmt: skip


def count_calls(layer: str, expected: int, **settings: Any) -> Symptom:
    """Return the symptom that a layer runs too often or too seldom."""
    hook = f"model.{layer}.register_forward_post_hook(lambda *_: calls.append(1))"
    return read(
        "len(calls)",
        str(expected),
        f"{IDS}\ncalls = []\n{hook}\nmodel(ids)",
        f"times that {layer} runs in one forward pass",
        **settings,
    )


def raise_error(run: str = "model(ids)", lines: str = IDS, make: str | None = None) -> Symptom:
    """Return the symptom that the port raises."""
    caught = f"""\
{lines}
try:
    {run}
    error = None
except Exception as raised:
    error = f"{{type(raised).__name__}}: {{raised}}".splitlines()[0]"""
    return Symptom(f"what {run} raises", "error", "None", caught.strip(), make=make)
