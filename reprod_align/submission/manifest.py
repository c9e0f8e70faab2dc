"""The files' digests: the manifest that packing writes, and the code and weights beside the submission."""

import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from reprod_align.base import FRAMEWORKS
from reprod_align.base.files import as_json, whole_file
from reprod_align.base.text import count, shorten
from reprod_align.records.gate import digest, list_versions
from reprod_align.submission.files import GUIDE_FOLDER, MANIFEST, STEPS, Submission, is_known
from reprod_align.submission.findings import (
    DAMAGED,
    EDITED,
    MISSING,
    RUNS,
    Verification,
    get_dict,
    read_object,
)

_NAMED = 9  # files in one remark
_NAMED_RECORDS = 4  # in one finding


def check_manifest(submission: Submission, findings: Verification) -> None:
    """Compare each file's hash with the manifest; remark on what belongs to no submission."""
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


def _note_others(submission: Submission, findings: Verification) -> None:
    """Remark on files that a submission does not hold: they were not looked at."""
    others = [name for name in submission.files if not is_known(name)] + [*submission.outside]
    if others:
        verb = "is" if len(others) == 1 else "are"
        # pages of the guide's folder claim nothing of a run, and are named last
        by_kind = sorted(others, key=lambda name: name.startswith("README"))
        findings.remarks.append(
            f"{count(len(others), 'file')} {verb} no part of a submission and not looked at: "
            f"{shorten(by_kind, _NAMED)}"
        )


def pack(files: Mapping[str, Path], target: Path) -> None:
    """Write the files, by their names in log_reprod/, and their manifest to `target`, whole or not at all.

    Raises ReprodError if that fails.
    """
    manifest = {
        "format": 1,
        "versions": list_versions(),
        "files": {name: digest(path) for name, path in sorted(files.items())},
    }
    with (
        whole_file(target) as handle,
        zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        archive.writestr(f"{GUIDE_FOLDER}/{MANIFEST}", as_json(manifest))
        for name, path in sorted(files.items()):
            archive.write(path, f"{GUIDE_FOLDER}/{name}")


def find_code(source: Path) -> Path | None:
    """Return the folder with a submission's code: what a log_reprod/ lies in; None for an archive."""
    root = source.resolve()
    if not root.is_dir():
        return None
    return root.parent if root.name == GUIDE_FOLDER else root


def check_sources(submission: Submission, code: Path, findings: Verification) -> None:
    """Add a fault for each file of the code whose digest is not the one that a record was made with.

    A missing file is accepted: not everything is handed in.
    """
    read = cache(digest)  # a file of weights counts in every step
    changed: dict[str, dict[str, None]] = {}
    for step in STEPS:
        if step.result not in submission.files:
            continue
        made = get_dict(read_object(submission, step.result, Verification(findings.source)), "made")
        for side in FRAMEWORKS:
            for name, wanted in get_dict(get_dict(made, "sources"), side).items():
                found = _list_places(code, name)
                if found and all(read(path) != wanted for path in found):
                    changed.setdefault(name, {})[f"{step.name}_{side}"] = None
    for name, records in changed.items():
        names = shorten([*records], _NAMED_RECORDS)
        text = f"{name} in {code} is not the one that these were made with: {names}"
        findings.add(RUNS, text)


def _list_places(code: Path, name: str) -> list[Path]:
    """Return the files that a source can be: it is known by the end of its path."""
    return [path for root in (code, code / "pipeline", code.parent)
            for path in (root / name, root / Path(name).name) if path.is_file()]  # fmt: skip
