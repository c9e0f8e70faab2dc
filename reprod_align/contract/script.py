"""One script of a submission, run where the other framework cannot be found: OPTIONS SCRIPT [WORDS]."""

import json
import os
import runpy
import sys
from pathlib import Path

from reprod_align.contract.guard import hide_packages

_OTHERS = {"torch": ("paddle", "paddlenlp"), "paddle": ("torch", "torchvision", "torchaudio")}


def main() -> None:
    """Run the script as `python SCRIPT` would, in its folder's copy."""
    options, script = json.loads(sys.argv[1]), sys.argv[2]
    hide_packages(_OTHERS[options["side"]])
    sys.path[:0] = [str(Path(script).parent), os.getcwd()]
    sys.argv = sys.argv[2:]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
