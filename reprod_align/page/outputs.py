"""The options of a command that compares: --report, --markdown, --junit; and what they write."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from reprod_align.base.files import write_text
from reprod_align.page.places import PAGE, require_place, require_report

if TYPE_CHECKING:  # an import stays light
    from reprod_align.page.content import Page

_XML: Final = (".xml",)


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
    """Raise ReprodError for a file that cannot be written; to be asked before the work begins."""
    if options.report:
        require_report(options.report, kinds)
    if options.junit:
        require_place(options.junit, _XML, "--junit")


def write_outputs(options: Namespace, make_page: Callable[[], "Page"]) -> None:
    """Print and write what was asked for; but --json, and a report that is a picture, are the command's.

    Raises ReprodError if a file cannot be written.
    """
    page_wanted = options.report and options.report.suffix.lower() in PAGE
    if not (options.markdown or options.junit or page_wanted):
        return
    page = make_page()
    if options.markdown:
        from reprod_align.page.markdown import render_markdown

        print(render_markdown(page), end="")
    if options.junit:
        from reprod_align.page.junit import render_junit

        write_text(options.junit, render_junit(page))
    if page_wanted:
        from reprod_align.page.render import write_page  # heavy: it draws

        write_page(options.report, page)
