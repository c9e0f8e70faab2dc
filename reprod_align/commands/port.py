"""Ports a PyTorch file to Paddle and proves the port.

SRC.py   the PyTorch file. It is your own code and runs as such
OUT      the result folder, which must not exist yet: the port, its weights, the pair file, a report

Every call of PyTorch's is recorded where it stands, and written as the simplest that gives the recorded
result on Paddle. The draft is imported, built with your arguments, given the converted weights
and compared by `align`. What is found and has a known remedy is applied as an edit, and `align` judges
again, until the port is faithful or nothing more is known. The report lists each edit with its reason,
and what is left for a person with its line. `reprod-align pair OUT/pair.py` proves the port again.

With --train CALL the file's own training loop runs too, in the current folder, until two steps of an
optimizer are taken (checkpoints go to a temporary folder). Its calls are recorded with the others, and the
port's loop, given PyTorch's first weights, batches and draws, is compared with it: losses, gradients,
learning rates, parameters.

With --proxy nothing is written: SRC.py runs unchanged in a process of its own where
paddle.enable_compat() makes `import torch` import Paddle, and `align` judges it.

exit 0 the port is faithful, 1 something is left, 2 it cannot be done
"""

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path

from reprod_align.commands import add_json_argument, print_result
from reprod_align.errors import ReprodError
from reprod_align.pair.file import call_named, run_user_code
from reprod_align.pair.remote import describe_code
from reprod_align.porting.attempt import is_guarded, run_guarded
from reprod_align.porting.port import judge_source, port
from reprod_align.porting.report import PortResult
from reprod_align.porting.script import Script
from reprod_align.porting.source import Source, open_source
from reprod_align.report import Report


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("source", type=Path, metavar="SRC.py")
    add("-o", "--out", type=Path, metavar="OUT", help="the folder to make")
    add("--torch", metavar="MODULE:CALL",
        help="makes the model; MODULE is SRC.py (default: torch_model() in it)")  # fmt: skip
    add("--inputs", metavar="MODULE:CALL",
        help="a dict or tuple of arrays or tensors (default: inputs() in SRC.py)")  # fmt: skip
    add("--train", metavar="CALL", help='trains, as "main()": two of its steps are compared too')
    add("--train-args", default="", metavar="WORDS", help="what CALL reads from its command line")
    add("--style", choices=("paddle", "compat"), default="paddle",
        help="plain Paddle, or PaConvert's names (default paddle)")  # fmt: skip
    add("--proxy", action="store_true",
        help="write nothing; does SRC.py as it is run on Paddle by paddle.enable_compat()?")  # fmt: skip
    add_json_argument(parser)


def run(options: Namespace) -> int:
    """Print what was done; return 0 if the port is faithful."""
    if sys.argv[1:2] == ["port"] and not options.proxy and not is_guarded():
        code = run_guarded([sys.executable, "-m", "reprod_align", *sys.argv[1:]])
        if code < 0:
            raise ReprodError(f"the process that ports was {describe_code(code)}")
        return code
    if options.proxy == (options.out is not None):
        raise ReprodError("give -o OUT for a port, or --proxy to try the source as it is")
    with run_user_code(options.source):
        source = open_source(options.source, options.torch)
        if options.train:
            source = replace(source, script=Script(options.train, options.train_args))
        _require_defaults(options, source)
        inputs = call_named(options.inputs or f"{source.name}:inputs()")
        result: PortResult | Report
        if options.proxy:
            result = judge_source(source, inputs)
        else:
            result = port(source, inputs, options.out, options.style)
    print_result(result, options.json)
    return 0 if result.passed else 1


def _require_defaults(options: Namespace, source: Source) -> None:
    """Raise ReprodError for a function that is neither named nor defined in the source."""
    for option, default in (("torch", "torch_model"), ("inputs", "inputs")):
        if getattr(options, option) is None and not hasattr(source.module, default):
            raise ReprodError(
                f"{source.path} defines no {default}(): define it, or give --{option} MODULE:CALL"
            )
