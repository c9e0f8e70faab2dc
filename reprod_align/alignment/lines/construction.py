"""The lines of findings that no call of the forward pass makes: where a layer or an optimizer is made."""

import re
from collections.abc import Sequence

from reprod_align.alignment.findings import Findings, give_lines
from reprod_align.alignment.runner import Runner
from reprod_align.base.naming import parent
from reprod_align.model.side import ModelInfo, Side
from reprod_align.model.source.lines import SourceLine
from reprod_align.model.source.parsing import find_construction, find_forward
from reprod_align.report import Finding

_MADE = {"optimizer": "optimizer", "schedule": "scheduler"}
"""stage -> what is made there by a function of the user's"""


def add_lines(findings: Findings, runner: Runner) -> None:
    """Give every finding without lines those where its layer, optimizer or schedule is made."""
    pairing = runner.pairing
    for finding in list(findings.report.findings):
        ours = theirs = None
        if finding.torch_line is None:
            ours = _find(finding, runner.reference, pairing.torch, finding.torch_name)
        if finding.paddle_line is None:
            theirs = _find(finding, runner.port, pairing.paddle, finding.paddle_name)
        findings.replace(finding, give_lines(finding, ours, theirs))


def _find(finding: Finding, side: Side, info: ModelInfo, name: str) -> SourceLine | None:
    if finding.stage in _MADE:
        return side.find_maker(_MADE[finding.stage])
    if finding.stage == "loss":
        return side.find_maker("loss")
    words = re.findall(r"\w+", finding.message)
    tensor = info.tensors.get(name)
    path = tensor.owner if tensor is not None and name not in info.modules else name
    stock = path in info.stock
    if tensor is not None and not stock:  # a parameter that the user's own class makes
        made = find_construction(side.find_classes(path), [tensor.role], "", words)
        if made is not None:
            return made
    if not stock and path in info.modules:
        return find_forward(side.find_classes(path))
    return find_layer(side, info, path, words)


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
