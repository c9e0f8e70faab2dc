"""The lines of findings that no call of the forward pass makes: where a layer or an optimizer is made."""

from collections.abc import Sequence

from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.lines.arguments import find_argument, find_makings, list_files
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.api import table
from reprod_align.base.naming import last_part, parent
from reprod_align.model.settings import SYNONYMS
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.making import find_choice, find_guard, find_held, find_making
from reprod_align.model.source.parsing import find_forward, find_measure
from reprod_align.model.source.settings import read_attributes
from reprod_align.report import Finding

_MADE = {"optimizer": "optimizer", "schedule": "scheduler"}
"""stage -> what is made there by a function of the user's"""
_TOLD = {"number of heads": "num_heads", "epsilon": "eps", "dropout": "p", "momentum": "momentum"}
"""words of a cause -> the setting of a layer that they are about"""


def add_lines(findings: Findings, runner: Runner) -> None:
    """Give every finding without lines those where its layer, optimizer or schedule is made."""
    pairing = runner.pairing
    for finding in list(findings.report.findings):
        ours = theirs = None
        settings = _list_settings(finding, pairing)
        if finding.torch_line is None:
            ours = find_torch_line(finding, runner.reference, pairing)
        if finding.paddle_line is None:
            theirs = _find_choice(finding, runner) or _find(
                finding, runner.port, pairing.paddle, finding.paddle_name, settings
            )
        findings.replace(finding, give_lines(finding, ours, theirs))


def find_torch_line(finding: Finding, side: Side, pairing: Pairing) -> SourceLine | None:
    """Return PyTorch's line of a finding that no call of the forward pass makes."""
    settings = _list_settings(finding, pairing)
    return _find(finding, side, pairing.torch, finding.torch_name, settings)


def find_settings(pairing: Pairing, ours: str, theirs: str) -> list[str]:
    """Return the settings that both modules have and in which they differ."""
    if ours not in pairing.torch.modules or theirs not in pairing.paddle.modules:
        return []
    return [one.name for one in pairing.compare_settings(ours, theirs)
            if None not in (one.torch_value, one.paddle_value)]  # fmt: skip


def _find_choice(finding: Finding, runner: Runner) -> SourceLine | None:
    """Return what makes Paddle's code choose another layer than PyTorch's, or leave one out."""
    if finding.stage != "weights":
        return None
    pairing, side, info = runner.pairing, runner.port, runner.pairing.paddle
    ours, theirs = finding.torch_name, finding.paddle_name
    known = {other: name for name, other in pairing.modules.items()}
    path = theirs if theirs in info.modules else parent(theirs)
    while path:
        other = pairing.torch.modules.get(known.get(path, path))
        for owner, making in find_makings(side, info, path):
            if other is not None and other.class_name != info.modules[path].class_name:
                line = find_choice(making, other.class_name)
                if line is not None:
                    return _find_chooser(side, info, owner, line)
        path = parent(path)
    path = parent(ours)
    while path and pairing.modules.get(parent(path), parent(path)) not in info.modules:
        path = parent(path)
    owner = pairing.modules.get(parent(path), parent(path))
    missing = path and f"{owner}.{last_part(path)}".lstrip(".") not in info.modules
    classes = side.find_classes(owner) if missing else []
    if missing and owner in info.stock:  # a list of layers, of other lengths
        return find_layer(side, info, owner)
    line = find_guard(classes, last_part(path))
    if line is None:  # what is held by that name is no layer: a plain list, say
        return find_held(classes, last_part(path))
    return _find_chooser(side, info, owner, line)


def _find_chooser(side: Side, info: ModelInfo, owner: str, condition: SourceLine) -> SourceLine:
    """Return the argument that a condition asks for, or the condition itself if it is a negation."""
    if "!=" in condition.expression or "not " in condition.expression:
        return condition
    names = read_attributes(condition)
    return (names and find_argument(side, info, owner, names, handed=True)) or condition


def _list_settings(finding: Finding, pairing: Pairing) -> list[str]:
    """Return the settings that the finding is about: those that differ, or the parameter itself."""
    ours, theirs = finding.torch_name, finding.paddle_name
    roles = [last_part(name) for name, info in ((ours, pairing.torch), (theirs, pairing.paddle))
             if name in info.tensors and name not in info.modules]  # fmt: skip
    if ours in pairing.torch.modules and theirs in pairing.paddle.modules:
        found = sorted(pairing.compare_settings(ours, theirs), key=lambda one: not one.conclusive)
        return [*(one.name for one in found), *roles]
    return roles


def _find(
    finding: Finding, side: Side, info: ModelInfo, name: str, settings: Sequence[str]
) -> SourceLine | None:
    """Return the line of one side. settings: in which the modules of the finding differ."""
    if finding.stage in _MADE:
        return side.find_maker(_MADE[finding.stage])
    if finding.stage == "loss":
        function = side.find_maker("loss")
        twice = f"{side.name} applies softmax before" in finding.message
        return function and find_measure(function, "softmax" if twice else "")
    tensor = info.tensors.get(name)
    path = tensor.owner if tensor is not None and name not in info.modules else name
    told = [
        name for words, name in _TOLD.items() if words in finding.message and path in info.stock
    ]
    settings = [*settings, *told]
    names = list_names(settings, info.modules[path].kind if path in info.modules else "")
    made = find_argument(side, info, path, names) if names and path in info.modules else None
    if made is not None:
        return made
    if path in info.stock or (finding.stage == "weights" and tensor is None):
        return find_layer(side, info, path)
    classes = side.find_classes(path) if path in info.modules else []
    if tensor is not None:  # a parameter that the user's own class makes
        making = find_making(classes, [tensor.role], "")
        return making.place if making is not None else find_forward(classes)
    return find_forward(classes) or find_layer(side, info, path)


def list_names(settings: Sequence[str], kind: str) -> list[str]:
    """Return the names that settings of a kind of layer may have in a constructor."""
    names: list[str] = []
    for name in settings:
        convention, _ = table.conventions().get((kind, name), (None, ""))
        argument = [] if convention is None else [convention.argument]
        names += [name, *argument, f"{name}_attr", f"has_{name}", *sorted(SYNONYMS.get(name, ()))]
    return list(dict.fromkeys(filter(None, names)))


def find_layer(side: Side, info: ModelInfo, path: str) -> SourceLine | None:
    """Return where the user's code makes a layer."""
    step = next(find_makings(side, info, path), None)
    while step is not None:
        owner, making = step
        if making.file in list_files(side, owner):
            return making.place
        step = next(find_makings(side, info, owner), None)
    return None
