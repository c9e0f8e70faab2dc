"""The versions of the two frameworks that the library works with, told before either is imported."""

import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from reprod_align.errors import ReprodError

OLDEST: Final[Mapping[str, tuple[int, int]]] = {"torch": (2, 2), "paddlepaddle": (2, 6)}
"""what is older is refused; docs/versions.md says which versions were run"""
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "torch": ("torch",),
    "paddlepaddle": ("paddlepaddle", "paddlepaddle-gpu"),
}
"""under which a framework may be installed"""


def require(package: str) -> None:
    """Raise ReprodError if the installed version of a framework is too old for the library.

    package: "torch" or "paddlepaddle". One that is built from source, version 0.0.0, passes; so does one
    that is not installed: its import says so.
    """
    for name in _NAMES[package]:
        try:
            found = version(name)
        except PackageNotFoundError:
            continue
        numbers = tuple(map(int, re.findall(r"\d+", found)[:2]))
        if (0, 0) < numbers < OLDEST[package]:
            oldest = ".".join(map(str, OLDEST[package]))
            raise ReprodError(f"reprod-align needs {name} >= {oldest}, found {found}")
