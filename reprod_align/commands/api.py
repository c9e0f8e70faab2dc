"""Shows one difference between the frameworks, with its code on both sides, and runs it here.

Without a name it lists all entries; --search lists those that contain a word. A name of PyTorch's that no
entry is about (torch.einsum) shows what `reprod-align port` writes in its place.

exit 0 the entry holds, 1 the installed versions behave otherwise, 2 the entry is unknown or cannot run
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from reprod_align import api
from reprod_align.api import calls, pages
from reprod_align.api.entry import Entry, run_entry
from reprod_align.base.files import as_json
from reprod_align.commands import add_json_argument
from reprod_align.errors import ReprodError


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", help="an entry's name, as batch-norm-momentum")
    parser.add_argument("--search", metavar="WORD", help="list the entries that contain the word")
    add_json_argument(parser)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="run all, write the pages")


def run(options: Namespace) -> int:
    """Show, list or write. Raises ReprodError for an unknown name or word, or where writing fails."""
    if options.name and (options.search or options.write):
        raise ReprodError("api: give a name, --search or --write, only one of them")
    if options.write:
        print(f"{len(pages.write_pages(options.write))} files written to {options.write}")
        return 0
    if options.name:
        return _show(options)
    found = api.search_entries(options.search) if options.search else list(api.list_entries())
    if not found:
        raise ReprodError(f"no entry contains {options.search!r}: `reprod-align api` lists all")
    return _print_list(options, found)


def _show(options: Namespace) -> int:
    try:
        found = api.find_named(options.name)
    except ReprodError:
        rows = calls.find_rows(options.name)
        if not rows:
            raise
        print(
            as_json({"name": options.name, "calls": rows}) if options.json else pages.as_rows(rows)
        )
        return 0
    if len(found) > 1:
        return _print_list(options, found)
    entry = found[0]
    outcome = run_entry(entry)
    if options.json:
        print(as_json(pages.as_data(entry, outcome), ensure_ascii=False))
    else:
        print(pages.as_text(entry, outcome))
    return pages.choose_exit_code(outcome)


def _print_list(options: Namespace, found: Sequence[Entry]) -> int:
    if options.json:
        print(as_json([pages.as_data(entry) for entry in found], ensure_ascii=False))
    else:
        print(pages.as_list(found))
    return 0
