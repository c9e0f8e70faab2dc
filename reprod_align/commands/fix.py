"""Looks for the edits of the port in a pair file that make it faithful, proves them and prints a patch.

The file is one for `reprod-align pair`: `reprod-align pair --help` says what it defines. The model, the
loss, the optimizer and the schedule of Paddle's side may be edited; PyTorch's side and the inputs stay
as they are. An edit is "safe" if the pair is faithful with it on the given batch and on at least three
others that the search has not seen; otherwise it is "unproven" and is shown only.

-o FILE.patch writes the patch: `git apply FILE.patch` or `patch -p1 < FILE.patch` takes it. --apply makes
the safe edits in the files themselves, never in an installed package's.

exit 0 the port is faithful with the edits, 1 it is not, 2 it cannot be compared
"""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from reprod_align.base.files import whole_file
from reprod_align.commands import add_file_argument, add_json_argument, print_result
from reprod_align.errors import ReprodError
from reprod_align.mending.mend import mend_port
from reprod_align.mending.result import Mended
from reprod_align.pair.file import PairFile, open_file, run_user_code


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_argument(parser)
    add_json_argument(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.patch", help="write the patch there"
    )
    parser.add_argument("--apply", action="store_true", help="make the safe edits in the files")


def run(options: Namespace) -> int:
    """Print the edits; return 0 if the port is faithful with them, 1 if not."""
    if options.output is not None and not options.output.resolve().parent.is_dir():
        raise ReprodError(f"{options.output}: its folder does not exist")
    with run_user_code(options.file), open_file(options.file, PairFile) as file:
        mended = mend_port(
            file.pair(),
            lambda: file.side("paddle"),
            lambda: (file.side("torch"), file.inputs()),
        )
    print_result(mended, options.json)
    if options.output is not None:
        _write(options.output, mended.patch)
    if options.apply:
        _apply(mended)
    return 0 if mended.passed else 1


def _apply(mended: Mended) -> None:
    """Write the mended files. Raises ReprodError where that is not allowed; then none is written."""
    if not mended.edits:
        return
    if mended.proof.level != "safe":
        raise ReprodError("--apply: the edits are unproven, the files stay as they are")
    installed = [file for file in mended.texts if f"-packages{os.sep}" in file]
    if installed:
        raise ReprodError(f"--apply: {installed[0]} is of an installed package: use the patch")
    for file, text in mended.texts.items():
        _write(Path(file), text)


def _write(path: Path, text: str) -> None:
    """Write a text as it stands: its line ends are the file's own."""
    with whole_file(path) as stream:
        stream.write(text.encode())
