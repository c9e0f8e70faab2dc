"""Are the code and the weights that lie beside a submission those that its records were made with?"""

from functools import cache
from pathlib import Path

from reprod_align.base.text import shorten
from reprod_align.records.gate import digest
from reprod_align.submission.findings import RUNS, Findings
from reprod_align.submission.folder import GUIDE_FOLDER, Submission
from reprod_align.submission.layout import SIDES, STEPS
from reprod_align.submission.reading import get_dict, read_object

_NAMED = 4  # records in one finding


def find_code(source: Path) -> Path | None:
    """Return the folder with a submission's code: what a log_reprod/ lies in; None for an archive."""
    root = source.resolve()
    if not root.is_dir():
        return None
    return root.parent if root.name == GUIDE_FOLDER else root


def check_sources(submission: Submission, code: Path, findings: Findings) -> None:
    """Add a fault where a file of the code has another digest than the one that a record was made with.

    A missing file is accepted: not everything is handed in.
    """
    read = cache(digest)  # a file of weights counts in every step
    changed: dict[str, dict[str, None]] = {}
    for step in STEPS:
        if step.result not in submission.files:
            continue
        made = get_dict(read_object(submission, step.result, Findings(findings.source)), "made")
        for side in SIDES:
            for name, wanted in get_dict(get_dict(made, "sources"), side).items():
                found = _list_places(code, name)
                if found and all(read(path) != wanted for path in found):
                    changed.setdefault(name, {})[f"{step.name}_{side}"] = None
    for name, records in changed.items():
        text = f"{name} in {code} is not the one that these were made with: {shorten([*records], _NAMED)}"
        findings.add(RUNS, text)


def _list_places(code: Path, name: str) -> list[Path]:
    """Return the files that a source can be: it is known by the end of its path."""
    return [path for root in (code, code / "pipeline", code.parent)
            for path in (root / name, root / Path(name).name) if path.is_file()]  # fmt: skip
