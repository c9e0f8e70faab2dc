"""One script of a submission, run where the other framework cannot be found: OPTIONS SCRIPT [WORDS].

It runs in a copy of the code without any record. Records elsewhere, and what the system says of processes,
which tells where they lie, are not opened for it.
"""

import json
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from reprod_align.base import FRAMEWORKS
from reprod_align.contract.guard import hide_packages
from reprod_align.submission.files import GUIDE_FOLDER, STEPS

_OTHERS = {"torch": ("paddle", "paddlenlp"), "paddle": ("torch", "torchvision", "torchaudio")}


_OPENS: Final = ("open", "os.listdir", "os.scandir")
_RECORDS: Final = frozenset(
    name for step in STEPS for side in FRAMEWORKS for name in step.records(side)
)


def refuse_records(folder: Path) -> None:
    """Let every record that lies outside of `folder` be closed to this process."""
    own = f"{folder.resolve()}{os.sep}"

    def hear(event: str, arguments: Sequence[Any]) -> None:
        if event in _OPENS and isinstance(arguments[0], (str, bytes, os.PathLike)):
            real = os.path.realpath(os.fsdecode(arguments[0]))
            if not real.startswith(own) and _is_closed(Path(real)):
                raise PermissionError(
                    f"{Path(real).name}: a script computes its record, and reads none"
                )

    sys.addaudithook(hear)


def _is_closed(path: Path) -> bool:
    parts = path.parts
    of_processes = parts[1:2] == ("proc",) and any(part.isdigit() for part in parts[2:3])
    return path.name in _RECORDS or GUIDE_FOLDER in parts or of_processes


def main() -> None:
    """Run the script as `python SCRIPT` would, in its folder's copy."""
    options, script = json.loads(sys.argv[1]), sys.argv[2]
    hide_packages(_OTHERS[options["side"]])
    sys.path[:0] = [str(Path(script).parent), os.getcwd()]
    sys.argv = sys.argv[2:]
    refuse_records(Path.cwd())
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
