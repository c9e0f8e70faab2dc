"""The reports on the pieces of a model: joined to one, and kept in a folder from which a run goes on."""

import hashlib
import inspect
import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

from reprod_align.base.files import from_plain, to_plain
from reprod_align.base.tasks import ResultFolder, digest, digest_judge
from reprod_align.base.text import is_within
from reprod_align.errors import ReprodError
from reprod_align.model import Inputs, LocalSide, name_inputs
from reprod_align.page import Layer
from reprod_align.report import STAGES, Check, Details, Finding, NotJudged, Report, group_findings
from reprod_align.weights import FileLocation, RemoteFile

BY_SECTION = " by section, "
_FIGURE = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
_OF_A_PIECE = ("never called as a module", "no parameter gets a gradient")
"""remarks on what is true of a piece and need not be true of the model"""


def merge_reports(reports: Sequence[Report]) -> Report:
    """Return the report on the whole: every place once, each check at its worst.

    reports: on the pieces, in the order in which the model calls them.
    """
    merged = Report()
    judged = [one for one in reports if one.verdict == "diverges"] or reports
    found = sorted(_join_findings(judged), key=lambda one: STAGES.index(one.stage))
    merged.findings = group_findings(found)
    # outputs of a piece are what the whole models make of what its sections did
    merged.checks = _join_checks(
        replace(check, what=check.what.replace(", ", BY_SECTION, 1))
        for one in reports
        for check in one.checks
    )
    for text in dict.fromkeys(text for one in reports for text in one.remarks):
        if not text.startswith(_OF_A_PIECE) or all(text in one.remarks for one in reports):
            merged.remarks.append(text)
    merged.not_judged = join_unjudged(reports)
    merged.pairs = {name: other for one in reports for name, other in one.pairs.items()}
    merged.consequences = list(dict.fromkeys(text for one in judged for text in one.consequences))
    merged.shares = next((one.shares for one in judged if one.shares), [])
    merged.rounded = list(dict.fromkeys(place for one in judged for place in one.rounded))
    for one in judged:
        merged.imprecise |= one.imprecise
    merged.details = _join_details(reports)
    if merged.findings:
        merged.verdict = "diverges"
    elif any(one.verdict != "faithful" for one in reports):
        merged.verdict = "agrees to float32"
    return merged


def join_unjudged(reports: Iterable[Report]) -> list[NotJudged]:
    """Return what the reports leave unjudged, each once."""
    return list(dict.fromkeys(one for report in reports for one in report.not_judged))


def _join_details(reports: Sequence[Report]) -> Details:
    """Return every layer, weight and setting once; the picture of the first piece at fault."""
    every = [one.details for one in reports]
    failed = [one.details.picture for one in reports if one.findings]
    layers: dict[str, Layer] = {}
    for layer in (layer for one in reversed(every) for layer in reversed(one.layers)):
        layers[layer.torch_name] = layer
    return Details(
        [*reversed(layers.values())],
        next((picture for picture in failed if picture), None),
        next((one.curves for one in every if one.curves), []),
        list(dict.fromkeys(weight for one in every for weight in one.weights)),
        list(dict.fromkeys(setting for one in every for setting in one.settings)),
        next((one.inputs for one in every if one.inputs), ()),
    )


def _join_findings(reports: Sequence[Report]) -> list[Finding]:
    """Return the findings; what stands outside the sections is found in every piece, and said once.

    Those of the backward pass are in its order: the last piece's first.
    """
    forward = [f for one in reports for f in one.findings if f.stage != "backward"]
    backward = [f for one in reversed(reports) for f in one.findings if f.stage == "backward"]
    found: dict[object, Finding] = {}
    for finding in (*forward, *backward):
        found.setdefault((finding.stage, finding.torch_name, finding.paddle_name), finding)

    def follows(finding: Finding) -> bool:
        """Tell whether it is of the backward pass, and follows from one of the forward pass there."""
        return finding.stage == "backward" and any(
            one.stage == "forward"
            and one.paddle_name == finding.paddle_name
            and is_within(finding.torch_name, one.torch_name)
            for one in forward
        )

    return [one for one in found.values() if not follows(one)]


def _join_checks(checks: Iterable[Check]) -> list[Check]:
    """Return one check of each kind, the worst, which passes if all do."""
    found: dict[object, Check] = {}
    for check in checks:
        key = check.stage, _FIGURE.sub("#", check.what)
        known = found.setdefault(key, check)
        worse = max(known, check, key=_rank)
        found[key] = replace(worse, passed=known.passed and check.passed)
    return [*found.values()]


def _rank(check: Check) -> tuple[bool, float]:
    """Return what is larger for the worse of two checks: in float32, what is further beyond its noise."""
    relative = check.relative / check.noise if check.noise else check.relative
    return not check.passed, math.inf if math.isnan(relative) else relative


_AT_ONCE = 2**24  # bytes


def find_report(results: ResultFolder, name: str) -> Report | None:
    """Return a report that is kept under a name; None if there is none, or its file is damaged."""
    known = results.find(name)
    with suppress(TypeError, ValueError, KeyError, AttributeError):
        report: Report | None = None if known is None else from_plain(Report, known)
        return report
    return None


def keep_report(results: ResultFolder, name: str, report: Report) -> None:
    """Keep a report under a name: its file is written whole or not at all."""
    results.keep(name, {one.name: to_plain(getattr(report, one.name)) for one in fields(report)})


def digest_request(
    inputs: Inputs, sides: Iterable[LocalSide], settings: Iterable[object], *makers: object
) -> str:
    """Return a digest of all that decides what the reports say, but for the weights."""
    parts: list[str | bytes] = [digest_judge()]
    for name, array in name_inputs(inputs).items():
        parts += [f"{name} {array.dtype} {array.shape}", array.tobytes()]
    for side in sides:
        parts += sorted(_read_sources(side, makers))
        info = side.describe()
        parts.append(repr((info.modules, info.tensors, sorted(info.stock))))
    return digest(*parts, repr([*settings]))


def digest_files(files: Iterable[FileLocation]) -> str:
    """Return a digest of files' names and contents; at an address, of the version that its server names."""
    made = hashlib.sha256()
    for path in files:
        made.update(f"{path.name}\0".encode())
        if isinstance(path, RemoteFile):
            if not path.version:
                raise ReprodError(
                    f"{path}: its server names no version (ETag, Last-Modified), so that nothing can be "
                    "kept: download the file, or leave --state and the workers out"
                )
            made.update(f"{path.address} {path.version} {path.size}\0".encode())
            continue
        with path.open("rb") as handle:
            while block := handle.read(_AT_ONCE):
                made.update(block)
    return made.hexdigest()


def _read_sources(side: LocalSide, makers: Iterable[object]) -> set[str]:
    """Return the source files, as text, of the modules' classes and of the functions."""
    kinds = {kind for _, module in side.fw.modules(side.model) for kind in type(module).__mro__}
    found = set()
    for one in (*kinds, side.loss, side.optimizer, side.scheduler, *makers):
        with suppress(TypeError, OSError):  # no source: built in, or typed at a prompt
            path = Path(str(inspect.getsourcefile(one)))  # type: ignore[arg-type]
            found.add(path.read_text(encoding="utf-8", errors="replace"))
    return found
