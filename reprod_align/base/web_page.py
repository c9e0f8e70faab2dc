"""A report as one web page, which needs no network and runs no script, and the plots in it."""

import os
from base64 import b64encode
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Final

from reprod_align.base.atomic import whole_file
from reprod_align.errors import ReprodError, one_line

try:
    from jinja2 import Environment, StrictUndefined
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


def rendered(body: str, *, title: str, width: str, **values: object) -> str:
    """Return the page: `body` is a jinja2 template of `values`; every text in them is escaped.

    title: of the window; width: the most that the text takes, in CSS.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, finalize=_printable
    )
    template = environment.from_string(f"{_START}{body}</body>\n</html>\n")
    return template.render(title=title, width=width, **values)


def drawn(figure: Figure, kind: str = "svg") -> bytes:
    """Return the figure as a file of `kind`, "png" or "svg", without the date."""
    image = BytesIO()
    figure.savefig(image, format=kind, metadata={"Date": None} if kind == "svg" else None)
    return image.getvalue()


def data_address(svg: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/svg+xml;base64,{b64encode(svg).decode()}"


def _printable(value: object) -> object:
    return one_line(value) if isinstance(value, str) else value


_START: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2328; }
body { max-width: {{ width }}; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #d0d7de; padding: .25rem .8rem .25rem 0; }
th, td { text-align: left; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
code { font-size: .92em; overflow-wrap: anywhere; }
li { overflow-wrap: anywhere; margin-bottom: .4rem; }
.passed { color: #1a7f37; } .failed { color: #cf222e; font-weight: 600; }
img { max-width: 100%; }
</style>
</head>
<body>
"""
