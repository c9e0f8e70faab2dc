"""Packs the files of a submission into a zip archive, with a manifest of their hashes."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

from reprod_align.base.files import as_json, whole_file
from reprod_align.records.gate import digest, list_versions
from reprod_align.submission.folder import GUIDE_FOLDER
from reprod_align.submission.layout import MANIFEST


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
