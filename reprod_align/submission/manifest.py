"""The manifest, written when the files were packed, and the files that belong to no submission."""

from reprod_align.base.text import count, shorten
from reprod_align.records.gate import digest
from reprod_align.submission.findings import DAMAGED, EDITED, MISSING, Findings
from reprod_align.submission.folder import Submission
from reprod_align.submission.layout import MANIFEST, is_known
from reprod_align.submission.reading import read_object

_NAMED = 9  # files in one remark


def check_manifest(submission: Submission, findings: Findings) -> None:
    """Hold each file's hash against the manifest; remark on what belongs to no submission."""
    _note_others(submission, findings)
    if MANIFEST not in submission.files:
        findings.remarks.append("without a manifest, so changes after packing cannot be told")
        return
    listed = read_object(submission, MANIFEST, findings).get("files")
    if not isinstance(listed, dict):
        findings.add(DAMAGED, f"{MANIFEST} lists no files")
        return
    for name, wanted in listed.items():
        if name not in submission.files:
            findings.add(MISSING, f"{name}, which the manifest lists")
        elif wanted != digest(submission.files[name]):
            findings.add(EDITED, f"{name} is not the file that was packed: its hash is another one")
    for name in submission.files:
        if name not in listed and name != MANIFEST and is_known(name):
            findings.add(EDITED, f"{name} was added after packing: the manifest does not list it")


def _note_others(submission: Submission, findings: Findings) -> None:
    """Remark on files that a submission does not hold: they were not looked at."""
    others = [name for name in submission.files if not is_known(name)] + [*submission.outside]
    if others:
        verb = "is" if len(others) == 1 else "are"
        findings.remarks.append(
            f"{count(len(others), 'file')} {verb} no part of a submission and not looked at: "
            f"{shorten(sorted(others, key=_is_page), _NAMED)}"
        )


def _is_page(name: str) -> bool:
    """Tell whether a file is a page of the guide's folder, which claims nothing of a run."""
    return name.startswith("README")
