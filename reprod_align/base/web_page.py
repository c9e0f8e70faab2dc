"""A report as one web page, which needs no network and runs no script, and the plots in it."""

import os
from base64 import b64encode
from collections.abc import Callable
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Final

from reprod_align.base.atomic import whole_file
from reprod_align.errors import ReprodError, one_line

try:
    from jinja2 import DictLoader, Environment, StrictUndefined
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.ticker import MaxNLocator as MaxNLocator
except ModuleNotFoundError as error:
    raise ReprodError(
        f"--report needs {error.name}: python -m pip install jinja2 matplotlib"
    ) from error


_KINDS: Final = (".html", ".png", ".svg")


def require_kind(path: str | os.PathLike[str]) -> None:
    """Raise ReprodError unless `path` ends in .html, .png or .svg."""
    if Path(path).suffix.lower() not in _KINDS:
        raise ReprodError(f"--report {path}: the name must end in {', '.join(_KINDS)}")


def write_report(
    path: str | os.PathLike[str], picture: Callable[[str], bytes], page: Callable[[], str]
) -> None:
    """Write what `path` asks for, whole or not at all: picture("png"), picture("svg") or the page.

    Raises ReprodError for another kind of file, or if it cannot be written.
    """
    require_kind(path)
    kind = Path(path).suffix.lower()
    data = page().encode() if kind == ".html" else picture(kind[1:])
    with whole_file(path) as handle:
        handle.write(data)


def render_page(package: str, *, title: str, width: str, **values: object) -> str:
    """Return the page: `page.html` of the package, a jinja2 template of `values`, in our frame.

    Every text in the values is escaped. title: of the window; width: the widest text, in CSS.
    """
    templates = {"frame": (__package__, "frame.html"), "body": (package, "page.html")}
    environment = Environment(
        loader=DictLoader({name: _read(*place) for name, place in templates.items()}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        finalize=_printable,
    )
    return environment.get_template("frame").render(title=title, width=width, **values)


def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def encode_figure(figure: Figure, kind: str = "svg") -> bytes:
    """Return the figure as a file of `kind`, "png" or "svg", without the date."""
    image = BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return image.getvalue()


def data_address(svg: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _printable(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value
