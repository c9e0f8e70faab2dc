"""What a command writes, and how it prints: --report, --markdown, --junit and their files; the terminal.

A file that cannot be written is refused in one line before the work begins. On a terminal, results are in
colour, and long lines are wrapped under their own column; elsewhere, and where rich is not installed, the
text is printed as it is. The Markdown is made for pull requests.
"""

import io
import math
import os
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TextIO
from xml.etree import ElementTree

from reprod_align.base.console import without_progress
from reprod_align.base.files import require_writable, whole_file, write_text
from reprod_align.errors import ReprodError, one_line
from reprod_align.page import CurvePlot, Figures, JUnitCase, Layer, Page, StepResult

PAGE: Final = (".html",)
PAGE_OR_PICTURE: Final = (".html", ".png", ".svg")
_XML: Final = (".xml",)
_FOLLOWS: Final = "differs, as a consequence of what failed"


def add_output_arguments(parser: ArgumentParser, kinds: str = ".html", json: bool = True) -> None:
    """Declare the options; kinds: what --report can write. json: --json is one of them."""
    parser.add_argument("--report", type=Path, metavar="PATH", help=f"write a report too: {kinds}")
    parser.add_argument(
        "--junit", type=Path, metavar="PATH.xml", help="write results for a build server"
    )
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--markdown", action="store_true", help="print a table to paste")
    if json:
        printed.add_argument("--json", action="store_true", help="print the result as JSON")


def require_outputs(options: Namespace, kinds: Sequence[str] = PAGE) -> None:
    """Raise ReprodError if a file cannot be written. Call it before the work begins."""
    if options.report:
        require_report(options.report, kinds)
    if options.junit:
        require_place(options.junit, _XML, "--junit")


def write_outputs(options: Namespace, make_page: Callable[[], Page]) -> None:
    """Print and write what was asked for, from one page; but --json is the command's.

    Raises ReprodError if a file cannot be written.
    """
    if not (options.markdown or options.junit or options.report):
        return
    page = make_page()
    if options.markdown:
        print(render_markdown(page), end="")
    if options.junit:
        write_text(options.junit, render_junit(page))
    if options.report:
        write_report(options.report, page)


def require_report(path: str | os.PathLike[str], kinds: Sequence[str] = PAGE) -> None:
    """Raise ReprodError if a report cannot be written there, or what draws it is not installed.

    Call it before the work begins.
    """
    require_place(path, kinds, "--report")
    try:
        import_module("reprod_align.page.html")  # heavy: only a page needs what draws it
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


def write_report(path: str | os.PathLike[str], page: Page) -> None:
    """Write the page, or its pictures alone, as the name asks for: .html, .png or .svg; whole or not at all.

    Raises ReprodError for another kind of file, or if it cannot be written.
    """
    from reprod_align.page.html import render_page  # heavy: it draws
    from reprod_align.page.plots import draw_picture

    require_place(path, PAGE_OR_PICTURE, "--report")
    kind = Path(path).suffix.lower()
    data = render_page(page).encode() if kind in PAGE else draw_picture(page, kind[1:])
    with whole_file(path) as handle:
        handle.write(data)


def render_junit(page: Page) -> str:
    """Return the XML: a suite for each stage, a test for each comparison, and the verdict last.

    A cause is one failure. Comparisons that differ in consequence of it, and the verdict where a
    case failed, are skipped tests that say so.
    """
    suites: dict[str, list[JUnitCase]] = defaultdict(list)
    follows = any(map(_is_failure, page.cases))
    verdict = JUnitCase("verdict", page.verdict, page.passed, page.sentence, consequence=follows)
    for case in (*page.cases, verdict):
        suites[case.suite].append(case)
    every = [case for cases in suites.values() for case in cases]
    root = ElementTree.Element("testsuites", _count(page.name, every))
    for name, cases in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", _count(name, cases))
        for case in cases:
            names = {"classname": one_line(f"{page.name}.{name}"), "name": one_line(case.name)}
            test = ElementTree.SubElement(suite, "testcase", names)
            message = one_line(case.message)
            if _is_failure(case):
                ElementTree.SubElement(test, "failure", {"message": message}).text = message
            elif not case.passed:
                ElementTree.SubElement(test, "skipped", {"message": f"{_FOLLOWS}: {message}"})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _count(name: str, cases: list[JUnitCase]) -> dict[str, str]:
    failures = sum(map(_is_failure, cases))
    counts = {"tests": len(cases), "failures": failures}
    counts["skipped"] = sum(not case.passed for case in cases) - failures
    return {"name": one_line(name)} | {key: str(number) for key, number in counts.items()}


def _is_failure(case: JUnitCase) -> bool:
    return not case.passed and not case.consequence


_WORD: Final = r"(?:(?<=  )|(?<=: )|^)(?:{})(?=$|  |[:,;])"  # a word that is a cell, or a verdict
_STYLES: Final = {
    "green": "ok|passed|faithful|aligned|verified|revealed|equal|agrees",
    "red": "DIFFERENT|FAILED|INVISIBLE|failed|different|diverges|NOT aligned|NOT verified",
    "yellow": "float32|agrees to float32|differs as described|not comparable",
}
_CODE: Final = r"^error\[[^\]]*\]"
_COLUMN: Final = re.compile(r"^ *(?:- |= \w+: |\d+\. )?|\S {2,}(?=\S)")
"""ends where a column begins"""
_INDENT: Final = 4  # of what follows a line without columns


@contextmanager
def show_output(quiet: bool = False, raw: bool = False, colour: bool = True) -> Iterator[None]:
    """Show on a terminal what the block prints; if quiet, show neither that nor progress.

    raw: the block prints JSON, or a table to paste: it is printed unchanged, also if quiet.
    """
    stream = sys.stdout
    with ExitStack() as stack:
        if quiet:
            stack.enter_context(without_progress())
        if quiet and not raw:
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(redirect_stdout(nowhere))
        terminal = stream is not None and not stream.closed and stream.isatty()
        if terminal and not (raw or quiet) and find_spec("rich") is not None:
            screen = _Terminal(stream, colour)
            stack.callback(screen.finish)
            stack.enter_context(redirect_stdout(screen))
        yield


class _Terminal(io.TextIOBase):
    """Prints each line with rich as soon as it is whole."""

    def __init__(self, terminal: TextIO, colour: bool) -> None:
        rich = import_module("rich.console")
        wanted = colour and not os.environ.get("NO_COLOR")
        self._terminal, self._rest = terminal, ""
        self._console: Any = rich.Console(
            file=terminal, color_system="auto" if wanted else None, highlight=False, markup=False
        )

    def write(self, text: str) -> int:
        """Print the lines that end in the text; keep what follows them."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            for part in _lay_out(line, self._console):
                self._console.print(part, soft_wrap=True)
        return len(text)

    def flush(self) -> None:
        """Send on what is printed."""
        self._terminal.flush()

    def finish(self) -> None:
        """Print a last line that does not end."""
        if self._rest:
            self._terminal.write(self._rest)
        self.flush()

    def isatty(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the terminal's."""
        return self._terminal.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The terminal's."""
        return self._terminal.encoding


def _lay_out(line: str, console: Any) -> Iterator[Any]:
    """Yield the line as painted lines that fit; all but the first begin where its last column does."""
    text, width = import_module("rich.text").Text(line), console.width
    for style, words in _STYLES.items():
        text.highlight_regex(_WORD.format(words), style)
    text.highlight_regex(_CODE, "bold red")
    if text.cell_len <= width:
        yield text
        return
    starts = [found.end() for found in _COLUMN.finditer(line) if found.end()]
    start = max((at for at in starts if text[:at].cell_len <= width * 0.6), default=_INDENT)
    margin = " " * text[:start].cell_len
    for number, part in enumerate(text[start:].wrap(console, width - len(margin))):
        part.rstrip()
        yield part.__class__.assemble(margin if number else text[:start], part)


_MOST: Final = 60  # rows of a table: what differs, and the first of the others
_STEPS: Final = 20  # of a curve
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#~!])")


def render_markdown(page: Page) -> str:
    """Return the text: verdict, first finding, a table by stage and layer, losses, versions, command."""
    parts = [
        _say_verdict(page),
        _list_steps(page.steps),
        _list_layers(page),
        *_list_curves(page.curves),
    ]
    for one in page.tables:
        if one.paste and one.rows:
            rows = [tuple(map(escape, row)) for row in one.rows[:_MOST]]
            table = make_table(tuple(map(escape, one.headers)), rows)
            parts.append(f"**{escape(one.title)}**\n\n{table}")
    if page.unjudged:
        parts.append(
            "\n".join(["**Not judged**:", "", *(f"- {escape(one)}" for one in page.unjudged)])
        )
    facts = dict(page.facts)
    command = facts.pop("command", "")
    told = ", ".join(f"{escape(name)} {escape(value)}" for name, value in facts.items())
    parts.append("\n".join(filter(None, [told, f"Command: {quote(command)}" if command else ""])))
    return "\n\n".join(filter(None, parts)) + "\n"


def escape(text: str) -> str:
    """Return a text in which nothing is Markdown, HTML or a mention."""
    return _SPECIAL.sub(r"\\\1", one_line(text)).replace("@", "&#64;")


def quote(name: str) -> str:
    """Return a name as code; "" for none."""
    plain = one_line(name).replace("`", "'").replace("|", "\\|")
    return f"`{plain}`" if plain else ""


def _say_verdict(page: Page) -> str:
    mark = "✅" if page.passed else "❌"
    lines = [f"### {mark} {quote(page.name)}: {escape(page.verdict)}", "", escape(page.sentence)]
    if page.diagnostics:
        first = page.diagnostics[0]
        code = f"{quote(first.code)} " if first.code else ""
        lines += ["", f"**First difference**: {code}{escape(first.stage)}: {quote(first.place)}: "
                      f"{escape(first.message)}"]  # fmt: skip
        lines += [
            f"- {escape(line.side)} {quote(line.place)}: {quote(line.code)}" for line in first.lines
        ]
        lines += [f"- {escape(name)}: {escape(words)}" for name, words in first.notes]
    lines += ["", *(f"- {escape(text)}" for text in page.meaning)] if page.meaning else []
    return "\n".join(lines)


def _list_steps(steps: Sequence[StepResult]) -> str:
    heads = ("step", "official", "strict", "worst tensor (float64)", "relative difference")
    rows = []
    for one in steps:
        name, official, strict = map(escape, (one.name, one.official, one.strict))
        rows.append((name, official, strict, quote(one.worst), escape(one.difference)))
    return make_table(heads, rows) if rows else ""


def _list_layers(page: Page) -> str:
    """Return a row for each layer and stage: mean and largest difference in both precisions."""
    rows = [*_show_stage("forward", page.layers), *_show_stage("backward", page.layers)]
    wide = [row for differs, row in rows if differs]
    near = [row for differs, row in rows if not differs]
    kept = [row for _, row in rows] if len(rows) <= _MOST else [*wide, *near][:_MOST]
    if not kept:
        return ""
    heads = ("stage", "layer", "mean (float64)", "max (float64)", "mean (float32)", "max (float32)")
    table = make_table(heads, kept)
    if len(kept) < len(rows):
        left = len(rows) - max(len(kept), len(wide))
        table += (
            f"\n\nand {len(rows) - len(kept)} rows more, {left} of them with no difference to tell"
        )
    return f"<details><summary>by layer ({len(rows)} rows)</summary>\n\n{table}\n\n</details>"


def _show_stage(stage: str, layers: Sequence[Layer]) -> Iterator[tuple[bool, tuple[str, ...]]]:
    """Yield whether a layer differs visibly, and its row."""
    for layer in layers:
        found = layer.forward if stage == "forward" else layer.backward
        rounded = layer.rounded if stage == "forward" else None
        if found is not None or rounded is not None:
            name = quote(layer.torch_name or "the model")
            row = (stage, name, *show_cells(found), *show_cells(rounded))
            yield found is not None and not found.relative <= 1e-9, row


def show_cells(figures: Figures | None) -> list[str]:
    """Return the mean and the largest difference as cells; what was not measured (NaN) is empty."""
    numbers = (math.nan, math.nan) if figures is None else figures[:2]
    return ["" if math.isnan(one) else f"{one:.1e}" for one in numbers]


def _list_curves(curves: Sequence[CurvePlot]) -> Iterator[str]:
    """Yield a table for each curve: the value of each step on both sides, and their difference."""
    for curve in curves:
        steps = list(zip(curve.steps, curve.expected, curve.actual, strict=True))
        every = max(1, math.ceil(len(steps) / _STEPS))
        rows = [
            (f"{step:g}", f"{ours:.10g}", f"{theirs:.10g}", f"{abs(theirs - ours):.1e}")
            for step, ours, theirs in steps[::every]
        ]
        yield make_table(("step", f"{escape(curve.name)}, PyTorch", "Paddle", "difference"), rows)


def make_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
