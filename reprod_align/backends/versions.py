"""What the installed versions of the frameworks have: which are too old, and which private names they lack.

`torch.private` and `paddle.private` alone read private names. Where a public way gives the same, a name
that is gone costs nothing. Every other name is a row of a table, with what ends with it: `doctor` lists
the rows that the installed version lacks, and a run that would need one says so in a remark.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from reprod_align.base import find_version
from reprod_align.errors import MissingNameError, ReprodError

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
        found = find_version(name)
        numbers = tuple(map(int, re.findall(r"\d+", found)[:2]))
        if (0, 0) < numbers < OLDEST[package]:
            oldest = ".".join(map(str, OLDEST[package]))
            raise ReprodError(f"reprod-align needs {name} >= {oldest}, found {found}")


_NOTHING: Final = object()


def look_up(owner: Any, name: str, otherwise: Any = None) -> Any:
    """Return an attribute that only some versions of a framework have; `otherwise` in the others."""
    return getattr(owner, name, otherwise)


@dataclass(frozen=True)
class PrivateName:
    """One private name, and what is lost in a version without it."""

    path: str
    """its owner and itself, as a user of the framework would write them: "Tensor._version" """
    loss: str
    """what does not work then"""
    owner: Callable[[], Any]
    """returns what has it"""
    public: str = ""
    """another attribute of the owner's that serves as well"""
    since: tuple[int, int] = (0, 0)
    """the first version that has it"""

    @property
    def is_missing(self) -> bool:
        """Whether the installed version lacks it."""
        try:
            owner = self.owner()
        except (AttributeError, ImportError):
            return True
        names = [self.path.rpartition(".")[2], *filter(None, [self.public])]
        return all(look_up(owner, name, _NOTHING) is _NOTHING for name in names)


def make_rows(
    loss: str,
    owner: Callable[[], Any],
    *paths: str,
    public: bool = False,
    since: tuple[int, int] = (0, 0),
) -> Iterator[PrivateName]:
    """Yield a row for each path; public: without its underscore the name serves as well."""
    for path in paths:
        other = path.rpartition("._")[2] if public else ""
        yield PrivateName(path, loss, owner, other, since)


class PrivateNames:
    """The private names of one framework without a public way, and which of them were missed."""

    def __init__(self, framework: str, version: str, rows: Iterable[PrivateName]) -> None:
        """Take the framework's name and version, and the table."""
        self.framework = f"{framework} {version}"
        numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
        built = numbers == (0, 0)  # from source: the newest
        self.rows = {row.path: row for row in rows if built or numbers >= row.since}
        self.missed: dict[str, None] = {}
        """a line for each name that a run has had to do without"""

    def list_missing(self) -> list[str]:
        """Return a line for each name that the installed version lacks."""
        missing = [row for row in self.rows.values() if row.is_missing]
        owners = tuple(f"{row.path}." for row in missing)  # what they hold is missing with them
        return [
            self._describe(row.path, row.loss) for row in missing if not row.path.startswith(owners)
        ]

    def miss(self, path: str, loss: str = "") -> None:
        """Note that a run does without a name; loss: what that costs, where it is no row."""
        self.missed[self._describe(path, loss or self.rows[path].loss)] = None

    def fail(self, path: str) -> NoReturn:
        """Raise MissingNameError: what was asked for does not work without the name."""
        raise MissingNameError(self._describe(path, self.rows[path].loss))

    def read(self, holder: Any, path: str) -> Any:
        """Return the holder's attribute of the name. Raises MissingNameError if it has none."""
        found = look_up(holder, path.rpartition(".")[2], _NOTHING)
        return self.fail(path) if found is _NOTHING else found

    def read_or_miss(self, holder: Any, path: str, otherwise: Any) -> Any:
        """Return the holder's attribute of the name; `otherwise`, and a note, if it has none."""
        found = look_up(holder, path.rpartition(".")[2], _NOTHING)
        if found is not _NOTHING:
            return found
        self.miss(path)
        return otherwise

    def _describe(self, path: str, loss: str) -> str:
        return f"{self.framework} has no {path}: {loss}"
