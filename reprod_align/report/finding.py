"""One place at which a port is not faithful: its stable code, its lines as a compiler prints them, its group.

A finding whose cause is known from the table of APIs has the name of that entry
(`reprod-align api layer-norm-epsilon`) as its code; any other has a `FindingKind`, by what differs.
Continuous integration filters by codes, and tests assert on them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Final, Literal, get_args

from reprod_align.api import find_entry, split_references
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.text import count, parent, pattern, shorten
from reprod_align.errors import one_line

FindingKind = Literal[
    "module", "own-code", "mask", "port-raises",
    "outputs", "outputs-exchanged", "output-missing", "output-value", "axes-exchanged",
    "nothing-finite", "not-comparable", "predictions-flip", "float32-overflow",
    "kept-state", "running-statistics",
    "weight", "parameter-unpaired", "parameter-tied", "parameter-frozen",
    "parameter-gradient", "gradient", "gradient-cut", "input-gradient",
    "loss", "loss-gradient", "learning-rate", "optimizer-setting", "update", "training-loss",
    "rank-reduction", "rank-shard", "rank-apart", "rank-dropout", "rank-data",
]  # fmt: skip

KINDS: Final[Mapping[FindingKind, tuple[str, str]]] = {
    "module": ("A layer gets the reference's inputs and gives another output.",
               "某一层的输入与参考模型相同，输出却不同"),
    "own-code": ("A module's children agree, and what its own code computes between them does not.",
                 "模块的子模块都一致，模块自身在它们之间的计算不一致"),
    "mask": ("A module's own code makes another mask, index, constant or input.",
             "模块自身的代码产生了不同的掩码、索引、常量或输入"),
    "port-raises": ("The port raises an error where the reference runs.",
                    "参考模型能运行的地方，移植版报错"),
    "outputs": ("The outputs differ, and no single module makes the difference.",
                "输出不同，但差异不是由某一个模块造成的"),
    "outputs-exchanged": ("An output is another one of the reference's.",
                          "某个输出对应的是参考模型的另一个输出"),
    "output-missing": ("One side alone has an output.",
                       "某个输出只有一边才有"),
    "output-value": ("An output that is no tensor differs.",
                     "某个不是张量的输出不同"),
    "axes-exchanged": ("An output holds the reference's numbers with its axes in another order.",
                       "某个输出的数值与参考模型相同，但轴的顺序不同"),
    "nothing-finite": ("No output holds a finite number on either side.",
                       "两边的输出中都没有有限的数"),
    "not-comparable": ("No output can be compared.",
                       "没有可以比较的输出"),
    "predictions-flip": ("A predicted class is another one although every number is within its tolerance.",
                         "每个数都在容差之内，预测的类别却变了"),
    "float32-overflow": (
        "In float32 the port overflows or gives NaN where the reference's float32 is finite.",
        "参考模型的 float32 结果有限，移植版在 float32 下却溢出或得到 NaN",
    ),
    "kept-state": ("What a model keeps from call to call differs.",
                   "模型在多次调用之间保存的状态不同"),
    "running-statistics": ("A running statistic differs after a step in train mode.",
                           "train 模式下走一步之后，滑动统计量不同"),
    "weight": ("A weight is not the reference's.",
               "某个权重与参考模型的不同"),
    "parameter-unpaired": ("A parameter has no counterpart on the other side.",
                           "某个参数在另一边没有对应"),
    "parameter-tied": ("A parameter is tied to another on one side alone.",
                       "某个参数只在一边与另一个参数共享"),
    "parameter-frozen": ("A parameter is trained on one side alone.",
                         "某个参数只在一边参与训练"),
    "parameter-gradient": ("A parameter's gradient differs although all values at its module agree.",
                           "模块处的数值全部一致，某个参数的梯度却不同"),
    "gradient": ("A backward pass gives another gradient.",
                 "反向传播得到的梯度不同"),
    "gradient-cut": ("A gradient flows on one side alone.",
                     "梯度只在一边能传过去"),
    "input-gradient": ("The gradient of an input differs.",
                       "输入的梯度不同"),
    "loss": ("The loss of the same outputs differs.",
             "输出相同，损失却不同"),
    "loss-gradient": ("The gradient of the loss differs.",
                      "损失的梯度不同"),
    "learning-rate": ("A learning rate differs.",
                      "学习率不同"),
    "optimizer-setting": ("A setting of the optimizers differs.",
                          "优化器的某项设置不同"),
    "update": ("The same gradients give another update of the weights.",
               "梯度相同，权重的更新却不同"),
    "training-loss": ("The losses of training steps differ.",
                      "训练各步的损失不同"),
    "rank-reduction": ("A gradient is not reduced over the ranks as it should be.",
                       "梯度没有按应有的方式在各 rank 之间规约"),
    "rank-shard": ("A rank holds another part of a tensor than its own.",
                   "某个 rank 持有的不是它应有的那一份张量"),
    "rank-apart": ("Ranks hold different numbers where they should hold the same.",
                   "各 rank 应当相同的数值却不同"),
    "rank-dropout": (
        "Ranks draw the same random numbers for different parts, or different ones for the same.",
        "各 rank 对不同部分抽了相同的随机数，或对同一部分抽了不同的随机数",
    ),
    "rank-data": ("A replica sees other examples than it should.",
                  "某个副本看到的不是它应有的样本"),
}  # fmt: skip
"""each kind in one sentence, in English and in Chinese"""
assert set(KINDS) == set(get_args(FindingKind))


Stage = Literal["audit", "weights", "forward", "loss", "backward", "optimizer", "schedule"]
STAGES: tuple[Stage, ...] = (
    "audit", "weights", "forward", "loss", "backward", "optimizer", "schedule",
)  # fmt: skip
ColumnSpan = tuple[int, int]
"""a slice of a line of source, without the line's indentation; (0, 0): of no part in particular"""
_PLACES: Final = 6  # named in the text of a finding
_WHERE: Final = re.compile(r"at \([^)]*\) expected \S+, got \S+")  # the worst element
_SHAPE: Final = re.compile(r"^\([^)]*\): ")  # of a parameter
_NUMBER: Final = re.compile(r"(?<=[A-Za-z_])\.\d+\b")  # of a layer


@dataclass(frozen=True)
class Suggestion:
    """A change of the port's source that removes a difference."""

    file: str
    line: int
    """from 1: the first that it changes"""
    before: str
    after: str
    kind: str
    """of mistake, a stable name: "reference", "number", "operator", ..."""
    level: Literal["safe", "unproven", "tried"]
    """tried: on the given batch, as far as the place at fault; `fix` proves it on others"""
    column: int = 0
    """from 1, in characters; 0: not known, as are the two that follow"""
    last_line: int = 0
    last_column: int = 0
    """behind the last character that it replaces"""
    reference: Framework = "torch"

    def __str__(self) -> str:
        """Return the edit in one line."""
        whose = FRAMEWORKS[self.reference]
        left_out, added = keep_changed_lines(self.before, self.after)
        if not added:
            return f"leaving out `{left_out}` gives {whose}'s numbers"
        if not left_out:
            return f"adding `{added}` gives {whose}'s numbers"
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"`{after}` in place of `{before}` gives {whose}'s numbers"


def keep_changed_lines(before: str, after: str) -> tuple[str, str]:
    """Return two texts in a line each, of long ones the lines in which they differ.

    Where one line alone has moved, which it is says nothing: both texts are shown whole then.
    """
    old, new = ([" ".join(line.split()) for line in text.splitlines()] for text in (before, after))
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changed = [code[1:] for code in codes if code[0] != "equal"]
    first = " … ".join(" ".join(old[start:end]) for start, end, _, _ in changed if start < end)
    second = " … ".join(" ".join(new[start:end]) for _, _, start, end in changed if start < end)
    return (first, second) if first != second else (" … ".join(old), " … ".join(new))


@dataclass(frozen=True)
class Finding:
    """One place at which the port is not faithful, and why."""

    stage: Stage
    torch_name: str
    """dotted name of the module or parameter; "" the whole model"""
    paddle_name: str
    evidence: str
    """what was measured there, in words"""
    difference: float
    """the largest absolute difference there"""
    tolerance: float
    """the largest that a faithful pair may have there"""
    torch_line: str | None = None
    """the line of PyTorch's model from which Paddle's differs, as "file.py:123"; None: no source"""
    paddle_line: str | None = None
    torch_code: str = ""
    """what stands in that line"""
    paddle_code: str = ""
    places: tuple[str, ...] = ()
    """further places that differ for the same cause, in the order of the findings"""
    edit: Suggestion | None = None
    """the change of the port's source that removes this difference; None: none was found"""
    torch_span: ColumnSpan = (0, 0)
    """the part of `torch_code` at fault"""
    paddle_span: ColumnSpan = (0, 0)
    kind: FindingKind = "module"
    """what differs, where no entry of the table of APIs tells the cause"""
    cause: str = ""
    """why it differs; "" where that was not found out"""
    settings: str = ""
    """which settings of the two modules differ"""
    remedy: str = ""
    """what made the difference go away, where it is no edit"""
    batches: str = ""
    """the derived batches that show it; "" the given one"""
    reference: Framework = "torch"
    """whose model is right; the other one is the port"""

    @property
    def port(self) -> Framework:
        """The framework of the model that is judged."""
        return "paddle" if self.reference == "torch" else "torch"

    def line_of(self, framework: Framework) -> tuple[str | None, str, ColumnSpan]:
        """Return one side's line, what stands in it, and the part of that at fault."""
        if framework == "torch":
            return self.torch_line, self.torch_code, self.torch_span
        return self.paddle_line, self.paddle_code, self.paddle_span

    @property
    def code(self) -> str:
        """The stable code: the entry of the table of APIs that tells the cause, or the kind."""
        return next(iter(self.entries), self.kind)

    @property
    def entries(self) -> list[str]:
        """The entries of the table of APIs that the finding cites."""
        return list(dict.fromkeys(split_references(self.message)[1]))

    @property
    def rule(self) -> tuple[str, str]:
        """What the code means, in one sentence, in English and in Chinese."""
        if not self.entries:
            return KINDS[self.kind]
        entry = find_entry(self.code)
        return entry.differs, entry.chinese

    @property
    def title(self) -> str:
        """What is wrong: the cause, or the settings that differ, or what was measured."""
        settings = self.settings and f"settings differ: {self.settings}"
        title, _ = split_references(self.cause or settings or self.evidence)
        return f"{self.batches}: {title}" if self.batches else title

    @property
    def message(self) -> str:
        """All of it: why, what made it go away, which settings differ, what was measured."""
        settings = self.settings and f"Settings differ: {self.settings}"
        parts = filter(None, [self.cause, self.remedy, settings, self.evidence])
        return (f"{self.batches}: " if self.batches else "") + ". ".join(parts)

    @property
    def fix(self) -> str:
        """What makes the difference go away; "" where nothing was found."""
        return self.remedy if self.edit is None else str(self.edit)

    @property
    def place(self) -> str:
        """Both names, or the one that they share."""
        return name_place(self.torch_name, self.paddle_name)

    def __str__(self) -> str:
        """Return the finding in one line."""
        return one_line(f"{self.stage}: {self.place}: {self.message}")


def name_place(torch_name: str, paddle_name: str) -> str:
    """Return both names of a module or parameter, or the one that they share."""
    if torch_name == paddle_name:
        return torch_name or "the model"
    return f"{torch_name or 'the model'} (Paddle: {paddle_name or 'the model'})"


def list_finding(finding: Finding) -> list[str]:
    """Return the lines of a finding: its code and title, the line of the port, and what belongs to it."""
    head = f"error[{finding.code}]: {finding.stage}: {finding.place}: {finding.title}"
    line, code, (start, stop) = finding.line_of(finding.port)
    place = line or ""
    number = place.rpartition(":")[2] if code else ""
    margin = " " * (len(number) + 1)
    lines = [head]
    if place:
        lines.append(f"{margin[1:]}--> {place}")
    if number:
        lines.append(f"{number} |  {code}")
        is_all = not start and code[stop:].lstrip()[:1] in ("", "#")  # but for a comment
        if stop > start and not is_all:
            lines.append(f"{margin}|  {' ' * start}{'^' * (stop - start)}")
    return lines + [f"{margin}= {name}: {text}" for name, text in describe_finding(finding)]


def describe_finding(finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield what is said of a finding below its title and its line: a name, and the words."""
    if finding.fix:
        yield "fix", finding.fix
    line, code, _ = finding.line_of(finding.reference)
    if line is not None:
        yield FRAMEWORKS[finding.reference], f"{line}:  {code}"
    if finding.cause and finding.settings:
        yield "settings", split_references(finding.settings)[0]
    if finding.cause or finding.settings:
        yield "evidence", finding.evidence
    if finding.places:
        more = count(len(finding.places), "more place")
        yield "also", f"{more}: {shorten(finding.places, _PLACES)}"
    if finding.entries:
        yield "see", ", ".join(f"reprod-align api {entry}" for entry in finding.entries)


def group_findings(findings: Sequence[Finding]) -> list[Finding]:
    """Return one finding for each cause: the first, with the places of the others.

    One cause: one edit makes all of them go away, the same settings differ, or modules that are alike
    but for their numbers differ in the same way, made in the same line, or lack their parameters.
    """
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_find_cause(finding), []).append(finding)
    joined = []
    for first, *others in groups.values():
        places = [*first.places, *(place for one in others for place in (one.place, *one.places))]
        kept = dict.fromkeys(place for place in places if place != first.place)
        joined.append(replace(first, places=tuple(kept)))
    return joined


def _find_cause(finding: Finding) -> object:
    """Return what is the same for findings of one cause."""
    if finding.edit is not None:
        return finding.edit
    if finding.settings:
        return finding.stage, finding.settings
    if finding.kind == "parameter-unpaired":  # the shapes differ, and the layers are alike
        owners = (pattern(parent(name)) for name in (finding.torch_name, finding.paddle_name))
        return finding.kind, *owners, _SHAPE.sub("", finding.evidence)
    names = finding.torch_name, finding.paddle_name
    kinds = tuple(map(pattern, names))
    if kinds == names:  # of no layer that is one of many
        return finding
    message = _NUMBER.sub(".#", _WHERE.sub("", finding.message))
    return finding.stage, kinds, message, finding.paddle_line
