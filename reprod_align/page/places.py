"""Where a report goes: refused in one line before the work begins, and written whole at its end."""

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reprod_align.base.files import require_writable, whole_file
from reprod_align.errors import ReprodError

if TYPE_CHECKING:  # an import stays light
    from reprod_align.page.content import Page

PAGE: Final = (".html",)
PAGE_OR_PICTURE: Final = (".html", ".png", ".svg")


def require_report(path: str | os.PathLike[str], kinds: Sequence[str] = PAGE) -> None:
    """Raise ReprodError unless a report can be written: the place, and what draws it.

    To be asked before the work begins.
    """
    require_place(path, kinds, "--report")
    try:
        import_module("reprod_align.page.render")  # heavy: only a page needs what draws it
    except ModuleNotFoundError as error:
        raise ReprodError(
            f"--report needs {error.name}: python -m pip install jinja2 matplotlib"
        ) from error


def require_place(path: str | os.PathLike[str], kinds: Sequence[str], option: str) -> None:
    """Raise ReprodError unless the name ends in one of `kinds` and a file can be written there.

    option: what the user typed before the path. A folder that is missing is made with the file.
    """
    place = Path(path)
    if place.suffix.lower() not in kinds:
        raise ReprodError(f"{option} {path}: the name must end in {', '.join(kinds)}")
    try:
        taken, around = place.is_dir(), place.parent
        while not around.exists() and around != around.parent:
            around = around.parent
        folder = around.is_dir()
    except OSError as error:
        raise ReprodError(f"{option} {path}: {error.strerror or error}") from error
    if not folder:
        raise ReprodError(f"{option} {path}: {around} is not a folder")
    if taken:
        raise ReprodError(f"{option} {path}: this is a folder: give the name of a file")
    require_writable(place.parent)


def write_report(
    path: str | os.PathLike[str], picture: Callable[[str], bytes], page: Callable[[], "Page"]
) -> None:
    """Write what `path` asks for, whole or not at all: picture("png"), picture("svg") or the page.

    Raises ReprodError for another kind of file, or if it cannot be written.
    """
    from reprod_align.page.render import render_page

    require_place(path, PAGE_OR_PICTURE, "--report")
    kind = Path(path).suffix.lower()
    data = render_page(page()).encode() if kind == ".html" else picture(kind[1:])
    with whole_file(path) as handle:
        handle.write(data)
