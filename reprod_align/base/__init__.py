"""What every package needs: arrays, whole files, text and JSON; the frameworks' names, and versions."""

from typing import Final, Literal

Framework = Literal["torch", "paddle"]
FRAMEWORKS: Final[dict[Framework, str]] = {"torch": "PyTorch", "paddle": "Paddle"}
"""name in code -> in words; the reference's first"""


def find_version(package: str) -> str:
    """Return the version of an installed package; "" if there is none."""
    from importlib.metadata import PackageNotFoundError, version  # most commands ask for none

    try:
        return version(package)
    except PackageNotFoundError:
        return ""
