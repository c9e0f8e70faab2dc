"""The lines of findings that no call of the forward pass makes: where a layer or an optimizer is made."""

import re
from collections.abc import Sequence

from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.pairing import Pairing
from reprod_align.alignment.runner import Runner
from reprod_align.base.naming import parent
from reprod_align.model.settings import SYNONYMS
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.parsing import find_construction, find_forward, find_setting
from reprod_align.report import Finding

_MADE = {"optimizer": "optimizer", "schedule": "scheduler"}
"""stage -> what is made there by a function of the user's"""


def add_lines(findings: Findings, runner: Runner) -> None:
    """Give every finding without lines those where its layer, optimizer or schedule is made."""
    pairing = runner.pairing
    for finding in list(findings.report.findings):
        ours = theirs = None
        settings = find_settings(pairing, finding.torch_name, finding.paddle_name)
        if finding.torch_line is None:
            ours = _find(finding, runner.reference, pairing.torch, finding.torch_name, settings)
        if finding.paddle_line is None:
            theirs = _find(finding, runner.port, pairing.paddle, finding.paddle_name, settings)
        findings.replace(finding, give_lines(finding, ours, theirs))


def find_settings(pairing: Pairing, ours: str, theirs: str) -> list[str]:
    """Return the settings that both modules have and in which they differ."""
    if ours not in pairing.torch.modules or theirs not in pairing.paddle.modules:
        return []
    return [one.name for one in pairing.compare_settings(ours, theirs)
            if None not in (one.torch_value, one.paddle_value)]  # fmt: skip


def _find(
    finding: Finding, side: Side, info: ModelInfo, name: str, settings: Sequence[str]
) -> SourceLine | None:
    """Return the line of one side. settings: in which the modules of the finding differ."""
    if finding.stage in _MADE:
        return side.find_maker(_MADE[finding.stage])
    if finding.stage == "loss":
        return side.find_maker("loss")
    words = [*re.findall(r"\w+", finding.message), name.rpartition(".")[2]]
    words += [f"{word}_attr" for word in words] + [f"has_{word}" for word in words]
    tensor = info.tensors.get(name)
    path = tensor.owner if tensor is not None and name not in info.modules else name
    if path in info.stock or (finding.stage == "weights" and tensor is None):
        return find_layer(side, info, path, words)
    classes = side.find_classes(path) if path in info.modules else []
    if tensor is not None:  # a parameter that the user's own class makes
        return find_construction(classes, [tensor.role], "", words) or find_forward(classes)
    names = {other for name in settings for other in SYNONYMS.get(name, {name})}
    if names:
        made = find_setting(classes, names) or find_layer(side, info, path, words)
        return made or find_forward(classes)
    return find_forward(classes) or find_layer(side, info, path, words)


def find_layer(
    side: Side, info: ModelInfo, path: str, words: Sequence[str] = ()
) -> SourceLine | None:
    """Return where the user's code makes a layer; words: of the settings that matter."""
    owner = path
    while owner:
        owner = parent(owner)
        classes = side.find_classes(owner)
        steps = path[len(owner) :].lstrip(".").split(".")
        kind = info.modules[path].class_name if path in info.modules else ""
        made = find_construction(classes, steps, kind, words) if classes else None
        if made is not None:
            return made
    return None
