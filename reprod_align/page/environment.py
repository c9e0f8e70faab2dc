"""What a result was made with: versions, machine, date and command. Imports no framework."""

import os
import platform
import shlex
import sys
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import reprod_align

PACKAGES: Final = (
    "torch",
    "paddlepaddle",
    "paddlepaddle-gpu",
    "numpy",
    "transformers",
    "paddlenlp",
)
SWITCHES: Final = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE",
    "CUBLAS_WORKSPACE_CONFIG", "FLAGS_cudnn_deterministic", "FLAGS_embedding_deterministic",
    "ATEN_CPU_CAPABILITY",
)  # fmt: skip
"""environment variables that change numbers"""


def describe_run() -> list[tuple[str, str]]:
    """Return names and values: date, command, versions of what is installed, machine, switches."""
    facts = [
        ("date", datetime.now().astimezone().isoformat(" ", "seconds")),
        ("command", _describe_command()),
    ]
    facts += [("reprod-align", reprod_align.__version__), ("Python", platform.python_version())]
    facts += list_versions().items()
    facts.append(("machine", f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPUs"))
    return facts + [(name, os.environ[name]) for name in SWITCHES if name in os.environ]


def list_versions() -> dict[str, str]:
    """Return the versions of the packages that results depend on, as far as they are installed."""
    return {name: found for name in PACKAGES if (found := find_version(name))}


def find_version(package: str) -> str:
    """Return the version of an installed package; "" if there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _describe_command() -> str:
    program, *words = sys.argv or [""]
    path = Path(program)
    installed = path.name == "reprod-align" or path.parent.name == "reprod_align"
    shown = ["reprod-align"] if installed else ["python", os.path.relpath(program or ".")]
    return shlex.join([*shown, *words])
