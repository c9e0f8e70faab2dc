"""A small submission with its code: numpy stands for both frameworks, and records differ by rounding."""

import shutil
from pathlib import Path

from tests.submission.making import make_submission, make_values

import numpy as np

SCRIPT = """
import sys
from pathlib import Path

import numpy as np
from reprod_align import save_record

{above}
HERE = Path(__file__).resolve().parent
{read}
values = np.load(HERE / "weights" / "values.npz")
for step in sys.argv[1:]:
    for folder, dtype in ((HERE / "log_reprod", "float32"), (HERE / "log_reprod" / "strict", "float64")):
        record = {{}}
        for key in values.files:
            name, _, key = key.partition("/")
            array = values[name + "/" + key]
            if name == step:
                kept = array.dtype.kind != "f" or key.startswith("lr") or key.endswith(("acc", "accuracy"))
                array = array if array.dtype.kind != "f" else array.astype(dtype)
                record[key] = array if kept or not {ulps} else np.nextafter(array, array.dtype.type(10))
        {change}
        save_record(folder / (step + "_{side}.npy"), record)
"""


def write_submitted(folder: Path, paddle: str = "pass", above: str = "", read: str = "") -> Path:
    """Write code, weights and log_reprod/ as they are handed in; return the folder.

    paddle: what Paddle's script does to each record; above, read: what it does first.
    """
    logs = make_submission(folder)
    held = {f"{name}/{key}": np.asarray(value) for name, record in make_values(0).items()
            for key, value in record.items()}  # fmt: skip
    np.savez(folder / "weights" / "values.npz", **held)
    for side, prefix, ulps in (("torch", "pt", 0), ("paddle", "pd", 1)):
        own = side == "paddle"
        text = SCRIPT.format(side=side, ulps=ulps, change=paddle if own else "pass",
                             above=above if own else "", read=read if own else "")  # fmt: skip
        (folder / f"steps_{prefix}.py").write_text(text)
    assert logs.parent == folder
    return folder


def copy_anew(folder: Path, target: Path) -> Path:
    """Copy a folder as `cp -r` does, so that every file has a time of its own."""
    shutil.copytree(folder, target, copy_function=shutil.copyfile)
    return target
