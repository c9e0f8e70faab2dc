"""Converts weights between PyTorch and Paddle, tensor by tensor, and proves the result.

SRC   .bin, .pt, .pth (torch.save), .safetensors, .pdparams, the index of a sharded checkpoint
      (*.index.json) or a folder with either; wrapped state dicts and prefixes are seen through;
      or the address of a .safetensors file or its index, https://..., of which each tensor is read once
DST   a name that ends likewise; *.index.json writes shards beside it

Which tensor becomes which, and how, follows from the two models, as `reprod-align pair` pairs them: give
its file with --pair, or --torch, --paddle and --inputs. Nothing is written if a tensor is missing, left
over or misshapen, or if the two models' outputs differ in float64. --save-map writes the map as a file
that can be edited and given back with --map, in place of the models' own or, with --no-check, without
any models. A map made with a small model of an architecture fits a large one of as many layers.

With --torch-python or --paddle-python each model of the pair file runs in a process of its own, as in
`reprod-align pair`; this process needs only numpy.

With --parallel tp=2 the port is built on that many ranks of paddle.distributed.fleet, and DST is a folder for
the rank files that PaddleNLP loads, model_state.tp00.pdparams and so on; or SRC is such a folder, and DST a
PyTorch checkpoint.

exit 0 converted (or, with --verify, equal), 1 faults were found, 2 it cannot be done
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from reprod_align.base.console import tell
from reprod_align.commands import (
    add_json_argument,
    add_python_arguments,
    print_result,
    read_size,
)
from reprod_align.conversion import SHARD_SIZE, Conversion, ConversionResult, convert, verify
from reprod_align.conversion.weight_map import ModelPair, WeightMap, read_map, write_map
from reprod_align.errors import ReprodError
from reprod_align.model import check_inputs
from reprod_align.pair import paddle_side, torch_side
from reprod_align.pair.file import PairFile, call_named, open_file, run_user_code
from reprod_align.pair.remote import start_sides
from reprod_align.parallel.checkpoints import convert_parallel
from reprod_align.weights import locate


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the command's arguments."""
    add = parser.add_argument
    add("source", type=locate, metavar="SRC")
    add("target", type=Path, metavar="DST")
    add("--pair", type=Path, metavar="FILE.py",
        help="defines torch_model(), paddle_model(), inputs()")  # fmt: skip
    for name, title in (("torch", "the PyTorch model"), ("paddle", "the Paddle model"),
                        ("inputs", "a dict or tuple of arrays")):  # fmt: skip
        add(f"--{name}", metavar="MODULE:CALL", help=f"makes {title}, in place of --pair")
    add_python_arguments(parser)
    add("--parallel", metavar="RANKS", help="ranks of the port: tp=2; one side is rank files")
    add("--map", type=Path, metavar="FILE", help="use this map in place of the models' own")
    add("--save-map", type=Path, metavar="FILE", help="write the map")
    add("--select", default="", metavar="NAME",
        help="which state dict or prefix of SRC: ema, model.module")  # fmt: skip
    add("--from", dest="framework", choices=("torch", "paddle"), default="",
        help="whose weights SRC holds, where a .safetensors file does not tell")  # fmt: skip
    add("--shard-size", type=partial(read_size, unit=1000), default=SHARD_SIZE, metavar="N",
        help="bytes of a shard at most: 500M, 5G (default 5G)")  # fmt: skip
    add("--dry-run", action="store_true", help="show the rows and the faults, write nothing")
    add("--verify", action="store_true",
        help="compare DST, converted before, with SRC; write nothing")  # fmt: skip
    add("--no-check", action="store_true", help="do not run the models: if they can't be built")
    add_json_argument(parser)


def run(options: Namespace) -> int:
    """Print the rows and what was found; return 0 if nothing is wrong."""
    order = Conversion(
        options.source,
        options.target,
        options.select,
        options.framework,
        options.shard_size,
        options.dry_run,
        not options.no_check,
    )
    _require_apart(options)
    given = read_map(options.map) if options.map else None
    work = verify if options.verify else convert
    with run_user_code(options.pair or Path(str(options.source))):
        tell("making the models")
        if options.parallel:
            outcome = _convert_parallel(options, order, given)
        else:
            with _make_pair(options) as pair:
                outcome = work(order, pair, given)
    if options.save_map and outcome.map:
        write_map(options.save_map, outcome.map)
    print_result(outcome, options.json)
    return 0 if outcome.passed else 1


def _convert_parallel(
    options: Namespace, order: Conversion, given: WeightMap | None
) -> ConversionResult:
    if not options.pair or options.verify or options.dry_run:
        raise ReprodError(
            "--parallel needs --pair FILE.py, and goes with neither --verify nor --dry-run"
        )
    if not isinstance(order.source, Path):
        raise ReprodError(
            f"--parallel reads rank files or a checkpoint here: download {order.source}"
        )
    return convert_parallel(order, options.pair, options.parallel, given)


def _require_apart(options: Namespace) -> None:
    """Raise ReprodError if the map would be written over another file of the command."""
    saved = options.save_map
    if saved and saved.is_dir():
        raise ReprodError(f"--save-map {saved} is a folder: name a file")
    for other in (options.source, options.target, options.pair) if saved else ():
        if isinstance(other, Path) and saved.resolve() == other.resolve():
            raise ReprodError(f"--save-map {saved} would replace {other}: name another file")


@contextmanager
def _make_pair(options: Namespace) -> Iterator[ModelPair | None]:
    """Yield the models that the options name, None if they name none."""
    named = [options.torch, options.paddle, options.inputs]
    if options.pair and any(named):
        raise ReprodError("give --pair, or --torch, --paddle and --inputs, not both")
    pythons = options.torch_python, options.paddle_python
    if any(pythons):
        if not options.pair:
            raise ReprodError("--torch-python and --paddle-python need a file: give --pair FILE.py")
        with start_sides(options.pair, *pythons) as (reference, port):
            hello = reference.hello
            yield ModelPair(reference, port, hello.inputs, hello.settings.get("name_map"))
    elif options.pair:
        with open_file(options.pair, PairFile, any_reference=True) as file:
            sides = file.side("torch"), file.side("paddle")
            yield ModelPair(*sides, file.inputs(), file.settings().get("name_map"))
    elif any(named):
        if not all(named):
            raise ReprodError("--torch, --paddle and --inputs go together: give all three")
        torch, paddle, inputs = map(call_named, named)
        check_inputs(inputs)
        yield ModelPair(torch_side(torch), paddle_side(paddle), inputs)
    else:
        yield None
