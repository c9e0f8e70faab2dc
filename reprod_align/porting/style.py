"""Plain Paddle: its own names and keywords in place of those that only look like PyTorch's."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.loop import Course, Judge, Step, show_diff

Style = Literal["paddle", "compat"]


@dataclass(frozen=True)
class Rule:
    """A name that PaConvert writes, and Paddle's own, with the keywords that differ."""

    before: str
    after: str
    keywords: Mapping[str, str] = field(default_factory=dict)

    def propose(self, code: Code) -> Iterator[Edit]:
        """Yield the edits of every place that reads the name."""
        for node in code.nodes:
            if isinstance(node, ast.Attribute) and dotted(node) == self.before:
                if self.before != self.after:
                    yield code.replace(node, self.after)
            elif isinstance(node, ast.Call) and dotted(node.func) == self.before:
                for keyword in node.keywords:
                    name = self.keywords.get(keyword.arg or "")
                    if name:
                        yield code.rename_keyword(keyword, name)


_EPSILON: Final = {"eps": "epsilon"}
_BIAS: Final = {"bias": "bias_attr"}
_AXIS: Final = {"dim": "axis"}
RULES: Final = (
    Rule("paddle.nn.Module", "paddle.nn.Layer"),
    Rule("paddle.nn.ModuleList", "paddle.nn.LayerList"),
    Rule("paddle.nn.ModuleDict", "paddle.nn.LayerDict"),
    Rule("paddle.compat.nn.Linear", "paddle.nn.Linear", _BIAS),
    Rule("paddle.compat.nn.functional.softmax", "paddle.nn.functional.softmax", _AXIS),
    Rule("paddle.compat.nn.Softmax", "paddle.nn.Softmax", _AXIS),
    *(Rule(f"paddle.nn.Conv{n}d", f"paddle.nn.Conv{n}D", _BIAS) for n in (1, 2, 3)),
    *(Rule(f"paddle.nn.ConvTranspose{n}d", f"paddle.nn.Conv{n}DTranspose", _BIAS) for n in (1, 2, 3)),
    *(Rule(f"paddle.nn.{name}", f"paddle.nn.{name}", _EPSILON)
      for name in ("LayerNorm", "GroupNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D")),
    Rule("paddle.cat", "paddle.concat", _AXIS),
    *(Rule(f"paddle.{name}", f"paddle.{name}", _AXIS)
      for name in ("stack", "sum", "mean", "argmax", "squeeze", "unsqueeze", "softmax")),
)  # fmt: skip
_REASON: Final = "--style paddle: Paddle's own names and keywords."


def write_plainly(course: Course, judge: Judge, name: str) -> None:
    """Apply the rules to a faithful port; a rule that would cost the verdict is left out."""
    rules = [rule for rule in RULES if list(rule.propose(course.code))]
    if not course.outcome.passed or not rules:
        return
    before, code = course.code, _apply(course.code, rules)
    outcome = judge(code)
    if not outcome.passed:
        code, outcome = before, course.outcome
        for rule in rules:
            tried = _apply(code, [rule])
            told = judge(tried)
            if told.passed:
                code, outcome = tried, told
    if code.text != before.text:
        diff = show_diff(before.text, code.text, name)
        course.steps.append(Step("plain Paddle is asked for", "style", _REASON, "", diff))
        course.code, course.outcome = code, outcome


def _apply(code: Code, rules: list[Rule]) -> Code:
    return code.apply([edit for rule in rules for edit in rule.propose(code)])
