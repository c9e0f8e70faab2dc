"""What every script here shares: the model and the data that were chosen, and where files lie."""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import models
from informer_series import (
    Array,
    Split,
    calendar_marks,
    generate_series,
    read_series,
    time_features,
)
from informer_settings import (
    BATCH_SIZE,
    DTYPES,
    HERE,
    LENGTHS,
    SEED,
    SIZES,
    STACK_LAYERS,
    STRICT_DTYPE,
)
from reprod_align import EXACT, STRICT, Gate
from reprod_align.base.console import quieten, run_command
from reprod_align.errors import MissingInputError, ReprodError
from reprod_align.page.outputs import add_output_arguments, show_output
from reprod_align.randomness import epoch_order
from reprod_align.report.gates import judge_gates

import numpy as np

quieten()  # before a framework is imported

Batch = tuple[Array, Array, Array, Array]


@dataclass(frozen=True)
class Run:
    """What the command line chose."""

    options: argparse.Namespace

    @property
    def home(self) -> Path:
        """Where everything is written."""
        return self.options.home

    @property
    def checkpoint(self) -> Path:
        """The PyTorch side's state dict, named as the original names it."""
        return self.home / "checkpoint.pth"

    @property
    def paddle_weights(self) -> Path:
        """The same for the Paddle side."""
        return self.home / "model_state.pdparams"

    @property
    def model_name(self) -> str:
        """The class in models/pt_informer.py and models/pd_informer.py."""
        return "InformerStack" if self.options.stack else "Informer"

    @property
    def arguments(self) -> dict[str, Any]:
        """The constructor arguments of both sides."""
        lengths = dict(zip(("seq_len", "label_len", "out_len"), LENGTHS, strict=True))
        chosen = {"attn": self.options.attn, "embed": self.options.embed, "freq": "h"}
        layers = {"e_layers": STACK_LAYERS} if self.options.stack else {}
        return {"enc_in": 7, "dec_in": 7, "c_out": 7, **lengths, **SIZES, **chosen, **layers}

    @property
    def layer_names(self) -> list[str]:
        """The layers whose outputs the forward scripts record, in the order of the forward pass."""
        count = len(STACK_LAYERS) if self.options.stack else SIZES["e_layers"]
        inside = "encoders" if self.options.stack else "attn_layers"
        layers = [f"encoder.{inside}.{number}" for number in range(int(count))]
        return ["enc_embedding", *layers, "dec_embedding", "decoder", "projection"]

    @cached_property
    def splits(self) -> dict[str, Split]:
        """The series in three parts."""
        folder = self.options.data_dir
        series = read_series(folder / "ETTh1.csv") if folder else generate_series()
        marks = time_features if self.options.embed == "timeF" else calendar_marks
        found = marks(series.dates, "h")
        return {name: Split(series, name, LENGTHS, found) for name in ("train", "val", "test")}

    def order(self, split: str, epoch: int = 0) -> list[list[int]]:
        """Return which windows stand in which batch: shuffled for training, short batches left out."""
        length = len(self.splits[split])
        windows = epoch_order(length, SEED, epoch) if split == "train" else list(range(length))
        batches = [windows[start : start + BATCH_SIZE] for start in range(0, length, BATCH_SIZE)]
        full = [batch for batch in batches if len(batch) == BATCH_SIZE]
        return full[: self.options.batches or None]

    def first_batch(self) -> Batch:
        """Return the first windows of the test part: x, y, marks of x, marks of y."""
        windows = [self.splits["test"][index] for index in range(BATCH_SIZE)]
        return tuple(np.stack(part) for part in zip(*windows, strict=True))  # type: ignore[return-value]

    def require(self, path: Path, script: str) -> Path:
        """Return the path; MissingInputError naming the script to run first if there is no file."""
        if not path.is_file():
            raise MissingInputError(f"{path} is missing: first run {self.command(script)}")
        return path

    def output(self, name: str, dtype: str = STRICT_DTYPE) -> Path:
        """Return where the record `name` ("forward_torch") lies; float64 in strict/."""
        return self.home / ("strict" if dtype == STRICT_DTYPE else "") / f"{name}.npy"

    def gate(self, name: str, *, exact: bool = False, **options: Any) -> Gate:
        """Return what `check` is to compare; exact records exist in float64 alone."""
        official, strict = ([self.output(f"{name}_{side}", dtype) for side in ("torch", "paddle")]
                            for dtype in ("float32", STRICT_DTYPE))  # fmt: skip
        return Gate(
            name=name,
            official=tuple(strict if exact else official),  # type: ignore[arg-type]
            strict=tuple(strict),  # type: ignore[arg-type]
            strict_rule=EXACT if exact else STRICT,
            log=self.home / f"{name}_diff.log",
            first_run=f"{self.command(f'pt_{name}.py')} and {self.command(f'pd_{name}.py')}",
            sources=(self._sources("pt", name, exact), self._sources("pd", name, exact)),
            explanation=None if exact else partial(self._explain, name),
            **options,
        )

    def judge(self, gate: Gate) -> int:
        """Compare; return the exit code. Writes --report, --markdown and --junit."""
        return judge_gates(self.options, [gate], {gate.name: self._found_file(gate.name)})

    def command(self, script: str) -> str:
        """Return the command line of another script with the same choices."""
        return " ".join(["python", script, *self.words])

    @property
    def words(self) -> list[str]:
        """The choices as words of a command line."""
        words: list[str] = []
        for name, default in _defaults().items():
            chosen = getattr(self.options, name)
            if chosen != default:
                option = f"--{name.replace('_', '-')}"
                words += [option] if chosen is True else [option, str(chosen)]
        return words

    def _sources(self, side: str, name: str, exact: bool) -> tuple[Path, ...]:
        """Return the code and weights that make one side's records; a record older than one is stale."""
        own = (
            f"{side}_{name}.py",
            f"informer_{side}.py",
            "informer_settings.py",
            "informer_series.py",
        )
        code = tuple(HERE / file for file in own)
        if exact:
            return code
        folder = Path(models.__file__).parent
        model = (folder / f"{side}_informer.py", folder / "informer_arguments.py")
        return (*code, *model, self.checkpoint if side == "pt" else self.paddle_weights)

    def _found_file(self, name: str) -> Path:
        """Return where what `align` found after a failed comparison is kept."""
        return self.home / f"{name}_align.json"

    def _explain(self, name: str) -> list[str]:
        """Say where the two models part: `align` on the same pair."""
        from pair_informer import explain

        return explain(self, self._found_file(name))


def start(
    main: Callable[[Run], int | None],
    about: str | None,
    writes: str = "",
    check: bool = False,
) -> None:
    """Run a script's `main` on what the command line chose, and exit.

    0 done, or aligned; 1 different; 2 could not be done, with a line on stderr. Earlier records of the
    name `writes` are removed first. check: it takes --report, --markdown and --junit.
    """

    def work() -> int | None:
        parser = _parser(about)
        if check:
            add_output_arguments(parser, json=False)
        run = Run(parser.parse_args())
        for dtype in DTYPES if writes else ():
            run.output(writes, dtype).unlink(missing_ok=True)
        with show_output(raw=check and run.options.markdown):
            return main(run)

    sys.exit(run_command(Path(sys.argv[0]).name, work))


def make_run(words: list[str]) -> Run:
    """Return the run of a script with these words on its command line; ReprodError for wrong ones."""
    return Run(_parser(None).parse_args(words))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ReprodError(f"{message}; --help lists the options")


def _defaults() -> dict[str, Any]:
    return vars(_parser(None).parse_args([]))


def _parser(about: str | None) -> argparse.ArgumentParser:
    parser = _Parser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data-dir", type=_folder, metavar="DIR", help="holds ETTh1.csv (default: made up)")
    add("--attn", choices=("prob", "full"), default="prob", help="kind of attention")
    add("--embed", choices=("timeF", "fixed", "learned"), default="timeF", help="of the dates")
    add("--stack", action="store_true", help="InformerStack instead of Informer")
    add("--epochs", type=_positive, default=2, metavar="N", help="of the training")
    add("--batches", type=_count, default=6, metavar="N", help="of each epoch; 0 for all")
    add("--home", type=_path, default=HERE / "results", metavar="DIR", help="for what is written")
    return parser


def _folder(word: str) -> Path:
    if not Path(word).is_dir():
        raise argparse.ArgumentTypeError(f"{word} is not a folder")
    return _path(word)


def _path(word: str) -> Path:
    return Path(os.path.abspath(word))


def _positive(word: str) -> int:
    if _count(word) == 0:
        raise argparse.ArgumentTypeError("0 is too few")
    return int(word)


def _count(word: str) -> int:
    if not word.isdecimal():
        raise argparse.ArgumentTypeError(f"{word} is not a whole number")
    return int(word)
