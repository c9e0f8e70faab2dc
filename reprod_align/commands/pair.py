"""Judges the pair of models in a user's file, prints the report and writes it as a page.

The file defines

    def torch_model(): ...      returns the torch.nn.Module
    def paddle_model(): ...     returns its port, the paddle.nn.Layer
    def inputs(): ...           returns a dict of arrays (keywords) or a tuple (by position);
                                a plain variable `inputs` or `INPUTS` will do

and, optionally, the further arguments of `align`, by the same names: the functions torch_loss,
paddle_loss, torch_optimizer, paddle_optimizer, torch_scheduler, paddle_scheduler, and the variables
steps, name_map and copy_weights. `reference = "paddle"`, or --reference paddle, says that the Paddle model is
right, and PyTorch's is its port. A None counts as not given. The file can import modules from its
own folder.

--memory SIZE (8G, 512M) limits what this process keeps in memory; what is beyond it goes to temporary
files. Without it, nothing is written while memory is free.

With --torch-python or --paddle-python each side runs in a process of its own. A side without a PATH
uses this interpreter; this process itself needs only numpy. The file must then load where the other
framework is missing: import torch and paddle inside the functions, and take the models' classes from
modules that the functions import. Each process loads the file once; inputs, steps, name_map and
copy_weights are taken from the PyTorch side.

With --sections the models may be larger than memory: torch_model and paddle_model then make models
whose weights are not loaded, `torch_weights` says where they lie (safetensors, .bin, .pth; a file, or a
folder with a sharded checkpoint), and `paddle_weights`, if it is given, where Paddle's own lie (.pdparams
too). --state FOLDER keeps what is done: the same command goes on there after a stop. --jobs N judges
sections in N processes, --cluster tcp://HOST:8786 in the workers of dask.distributed, which see the file and
FOLDER, too; --memory is then each process's.

With --parallel the port runs on several ranks of paddle.distributed.fleet, which it is built for, and the
reference stays one process: tp=2, dp=2, "tp=2,sp" or "dp=2,tp=2". The file may then define
paddle_inputs(inputs, replica, replicas), what a replica of dp is given, and `fused`, a dict from the end of
a parameter's name to the sizes of the parts that it holds.

exit 0 the port is faithful, 1 it is not, 2 it cannot be compared
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.alignment import compare_pair
from reprod_align.base import FRAMEWORKS, Framework
from reprod_align.base.console import tell
from reprod_align.base.files import write_text
from reprod_align.base.tasks import Workers
from reprod_align.commands import (
    add_file_argument,
    add_parallel_arguments,
    add_python_arguments,
    add_worker_arguments,
    print_result,
    read_size,
)
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import (
    add_output_arguments,
    require_outputs,
    require_place,
    write_outputs,
)
from reprod_align.pair import PairSpec, announce_work, order_pair
from reprod_align.pair.file import PairFile, open_file, run_user_code
from reprod_align.pair.remote import start_sides
from reprod_align.parallel.align import align_parallel
from reprod_align.report import Report
from reprod_align.report.pages import make_page, render_sarif
from reprod_align.sections import SECTION_SIZE, Request, judge_request

EDITORS = ("vscode", "vscode-insiders", "vscodium", "cursor", "windsurf")
"""the schemes of editors that open SCHEME://file/PATH:LINE"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_file_argument(parser)
    add_output_arguments(parser)
    parser.add_argument("--reference", choices=list(FRAMEWORKS),
                        help="whose model is right (torch); the other one is judged")  # fmt: skip
    parser.add_argument("--memory", type=read_size, metavar="SIZE",
                        help="memory to take, as 8G; then files are used")  # fmt: skip
    parser.add_argument("--sections", type=int, nargs="?", const=SECTION_SIZE, metavar="PARAMETERS",
                        help=f"one section at a time, of so many parameters ({SECTION_SIZE:,})")  # fmt: skip
    parser.add_argument(
        "--state", type=Path, metavar="FOLDER", help="with --sections: keep what is done, go on"
    )
    add_worker_arguments(parser, "sections")
    add_parallel_arguments(parser)
    parser.add_argument(
        "--editor", default="", choices=EDITORS,
        help="with --report: its lines of source are links that open this editor here",
    )  # fmt: skip
    parser.add_argument(
        "--sarif", type=Path, metavar="PATH.sarif", help="write the findings for code scanning"
    )
    add_python_arguments(parser)


def run(options: Namespace) -> int:
    """Print the report; return 0 if the port is faithful, 1 if not."""
    require_outputs(options)
    if options.sarif:
        require_place(options.sarif, (".sarif", ".json"), "--sarif")
    report = judge_pair(options)
    if not options.markdown:
        print_result(report, options.json)
    if options.sarif:
        write_text(options.sarif, render_sarif(report, options.file))
    make = partial(make_page, report, options.file.name, options.editor)
    write_outputs(options, make)  # last: the report is not lost
    return 0 if report.passed else 1


def judge_pair(options: Namespace) -> Report:
    """Return the report on the pair in the file. Raises ReprodError if it cannot be judged."""
    with run_user_code(options.file):
        tell("making the models")
        if options.reference and (options.parallel or options.sections):
            raise ReprodError("--reference goes with neither --sections nor --parallel")
        if options.parallel is not None:
            if options.sections is not None or options.torch_python or options.memory:
                raise ReprodError(
                    "--parallel goes with neither --sections, --torch-python nor --memory"
                )
            ranks = options.parallel, options.time_limit, options.logs, options.paddle_python
            return align_parallel(options.file, *ranks)
        if options.sections is not None:
            return _judge_sections(options)
        if options.jobs != 1 or options.cluster:
            raise ReprodError("--jobs and --cluster go with --sections: its sections are the tasks")
        if options.torch_python or options.paddle_python:
            pythons = options.torch_python, options.paddle_python
            return _judge_apart(options.file, *pythons, options.memory, options.reference)
        return judge_file(options.file, options.memory, options.reference)


def judge_file(path: Path, memory: int | None = None, reference: Framework | None = None) -> Report:
    """Return the report on the pair in a file, both sides in this process.

    reference: the framework of the model that is right; None: what the file says.
    """
    with open_file(path, PairFile, any_reference=True) as file:
        report = compare_pair(replace(_announce(file.pair(reference)), memory=memory))
        report.remarks += file.remarks()
        return report


def _announce(pair: PairSpec) -> PairSpec:
    """Return the pair; its sides show each time what they are about to do."""
    reference, port = announce_work(pair.reference), announce_work(pair.port)
    return replace(pair, reference=reference, port=port)


def _judge_sections(options: Namespace) -> Report:
    """Compare one section at a time."""
    if options.torch_python or options.paddle_python:
        raise ReprodError("--sections runs both sides in this process: leave the interpreters out")
    path = options.file.absolute()  # a worker may be in another folder
    open_request = partial(_open_sections, path, options.sections, options.memory)
    return judge_request(open_request, options.state, Workers(options.jobs, options.cluster))


@contextmanager
def _open_sections(path: Path, size: int, memory: int | None) -> Iterator[Request]:
    """Yield what a file says is to be judged in sections; it is loaded in every process anew."""
    with open_file(path, PairFile) as file:
        settings: dict[str, Any] = {**file.settings()}
        settings |= file.find_functions("torch") | file.find_functions("paddle")
        weights, own = file.weights("torch"), file.weights("paddle")
        if weights is None:
            raise ReprodError(f"{path}: --sections needs torch_weights, a path")
        if settings.pop("copy_weights", own is None) is not (own is None):
            raise ReprodError(
                f"{path}: paddle_weights and copy_weights = False go together: give both or neither"
            )
        yield Request(
            torch_model=file.find_maker("torch"),
            paddle_model=file.find_maker("paddle"),
            inputs=file.inputs(),
            torch_weights=weights,
            paddle_weights=own,
            section_size=size,
            memory=memory,
            remarks=file.remarks(),
            **settings,
        )


def _judge_apart(
    path: Path,
    torch_python: str | None,
    paddle_python: str | None,
    memory: int | None,
    reference: Framework | None,
) -> Report:
    """Compare with each side in a process of its own; this one imports no framework.

    Each of the three takes a third of the memory.
    """
    share = None if memory is None else memory // 3
    with start_sides(path, torch_python, paddle_python, share) as (torch, paddle):
        hello = torch.hello
        right = reference or hello.reference
        pair = order_pair(torch, paddle, hello.inputs, right, **hello.settings, memory=share)
        report = compare_pair(_announce(pair))
        report.remarks += hello.remarks
        report.details.versions = paddle.hello.versions | hello.versions
        return report
