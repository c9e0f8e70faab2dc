"""One script's run: its command line, what it chose, where its files lie, and how it ends."""

import argparse
import os
import runpy
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pipeline.corpus import Corpus, fetch_corpus, find_corpus, find_task_corpus
from pipeline.profiles import PROFILES, Profile
from pipeline.settings import DTYPES, STRICT_DTYPE
from pipeline.tasks import SST2, TASKS, Task
from reprod_align.base.console import run_command
from reprod_align.base.files import require_writable
from reprod_align.base.text import shorten_path
from reprod_align.errors import MissingInputError, RefusedError, one_line
from reprod_align.page.outputs import show_output

REPOSITORY = Path(__file__).resolve().parents[1]

DEFAULTS = {
    "profile": "minilm",
    "weights": None,
    "task": SST2.name,
    "data_dir": None,
    "from_hub": False,
    "epochs": None,
    "dtype": "both",
    "home": REPOSITORY,
}


def make_parser(about: str | None) -> argparse.ArgumentParser:
    """Return the parser of the options that every script has; `about` is the script's docstring."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = "; ".join(f"{profile.name}: {profile.about}" for profile in PROFILES.values())
    parser.add_argument("--profile", choices=PROFILES, help=names)
    parser.add_argument(
        "--weights",
        type=folder,
        metavar="DIR",
        help="a Hugging Face BERT checkpoint to export instead of the profile's own",
    )
    parser.add_argument(
        "--task", choices=TASKS, help="what Steps 2 and 5 read and measure (default: sst2)"
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--data-dir",
        type=folder,
        metavar="DIR",
        help="the task's train.tsv and dev.tsv, instead of SST-2's built-in sentences",
    )
    source.add_argument(
        "--from-hub",
        action="store_true",
        help="the task's files from the Hugging Face hub, kept in data/ under --home",
    )
    parser.add_argument("--epochs", type=positive, metavar="N", help="epochs of Step 5")
    parser.add_argument("--dtype", choices=(*DTYPES, "both"),
                        help="float32: official records alone (default: both)")  # fmt: skip
    parser.add_argument(
        "--home",
        type=whole_path,
        metavar="DIR",
        help="where inputs and results lie (default: the repository)",
    )
    parser.add_argument(
        "--no-explain",
        action="store_true",
        help="a check that fails does not go on to look for the place",
    )
    parser.add_argument("--quiet", action="store_true", help="do not say what was written")
    parser.set_defaults(**DEFAULTS)
    return parser


def folder(word: str) -> Path:
    """Return a folder's whole path; a type of argument, which argparse refuses in a line."""
    path = whole_path(word)
    if not path.is_dir():
        raise argparse.ArgumentTypeError(f"{one_line(word)} is not a folder")
    return path


def whole_path(word: str) -> Path:
    """Return a path from the root on, no links in it; a type of argument."""
    try:
        path = Path(word).resolve()
        path.exists()  # raises if the name is too long
    except (OSError, RuntimeError) as error:  # links in a ring
        raise argparse.ArgumentTypeError(
            f"{one_line(word)[:100]}: expected a path: {error}"
        ) from error
    return path


def positive(word: str) -> int:
    """Return a whole number above 0; a type of argument."""
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word} is not a whole number above 0")
    return int(word)


@dataclass(frozen=True)
class Run:
    """What the command line chose. Everything read and written lies under `home`."""

    profile: Profile
    home: Path
    options: argparse.Namespace  # the whole command line: a script's own options too

    @property
    def task(self) -> Task:
        """The task of --task, which Steps 2 and 5 are about."""
        return TASKS[self.options.task]

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The precisions to record in, float64 first."""
        return DTYPES if self.options.dtype == "both" else (self.options.dtype,)

    @cached_property
    def corpus(self) -> Corpus:
        """The sentences of Steps 2 and 5, checked."""
        folder = self.options.data_dir
        if self.options.from_hub:
            folder = fetch_corpus(self.task, self.home)
        return find_corpus(folder) if self.task is SST2 else find_task_corpus(self.task, folder)

    @property
    def results(self) -> Path:
        """The folder of records and logs; a task other than SST-2 has its own."""
        folder = self.home / "log_reprod"
        return folder if self.task is SST2 else folder / self.task.name

    def output(self, name: str, dtype: str = STRICT_DTYPE) -> Path:
        """Return where the record `name` ("forward_torch") lies: float32 in `results`, else strict/."""
        folder = self.results / "strict" if dtype == STRICT_DTYPE else self.results
        return folder / f"{name}.npy"

    def describe_output(self, name: str) -> str:
        """Return the records `name` that exist, as the user would type them."""
        paths = dict.fromkeys(self.output(name, dtype) for dtype in DTYPES)
        return " and ".join(shorten_path(path) for path in paths if path.exists())

    def command(self, script: str) -> str:
        """Return the command line that runs another script with the same choices."""
        words = ["python", script]
        for name, default in DEFAULTS.items():
            chosen = getattr(self.options, name)
            if chosen != default:
                option = f"--{name.replace('_', '-')}"
                words += [option] if chosen is True else [option, str(chosen)]
        return shlex.join(words)

    def require(self, path: Path, script: str) -> Path:
        """Return an input's path; MissingInputError naming the script to run first if it is missing."""
        if not path.is_file():
            raise MissingInputError(f"{path} is missing: first run {self.command(script)}")
        return path


def make_run(**choices: object) -> Run:
    """Return a run of these choices, every other one at its default."""
    options = argparse.Namespace(**DEFAULTS | choices)
    return Run(PROFILES[options.profile], options.home, options)


def remove_records(run: Run, name: str) -> None:
    """Remove earlier records `name`, so that no check judges them after a script that fails.

    Raises ReprodError if new ones could not be written: before the work, not after it.
    """
    require_writable(run.results)
    for dtype in DTYPES:
        run.output(name, dtype).unlink(missing_ok=True)


@contextmanager
def replace_records(run: Run, name: str) -> Iterator[None]:
    """Remove earlier records `name` before the block; they come back if it refuses to begin.

    Raises ReprodError if new ones could not be written: before the work, not after it.
    """
    require_writable(run.results)
    paths = [run.output(name, dtype) for dtype in DTYPES]
    kept = {path: path.with_name(f".{path.name}.before") for path in paths if path.is_file()}
    for path, aside in kept.items():
        _move(path, aside)
    try:
        yield
    except RefusedError:
        for path, aside in kept.items():
            _move(aside, path)
        raise
    finally:
        for aside in kept.values():
            aside.unlink(missing_ok=True)


def _write(main: Callable[[Run], int | None], run: Run, name: str) -> int | None:
    """Run a script that writes the records `name`, and say so."""
    with replace_records(run, name):
        code = main(run)
    if not run.options.quiet:
        print(f"wrote {run.describe_output(name)}")
    return code


def _move(path: Path, to: Path) -> None:
    with suppress(FileNotFoundError):  # a second run of the script moved it
        path.replace(to)


def start(
    main: Callable[[Run], int | None],
    about: str | None,
    add_options: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    *,
    writes: str = "",
) -> None:
    """Run a script's `main` on what the command line chose, and exit: 0 done, 2 could not be done.

    Earlier records of the name `writes` are removed first, unless the run is refused. An error becomes
    one line on stderr.
    A check script's `main` returns its exit code.
    """
    parser = make_parser(about)
    add_options(parser)

    def work() -> int | None:
        options = parser.parse_args()
        run = Run(PROFILES[options.profile], options.home, options)
        with show_output(raw=getattr(options, "markdown", False)):
            return _write(main, run, writes) if writes else main(run)

    sys.exit(run_command(Path(sys.argv[0]).name, work))


_COUNTS = (
    "WORLD_SIZE",
    "PADDLE_TRAINERS_NUM",
)  # how many processes torchrun or Paddle's launcher started


def start_plain(main: Callable[[Run], None], about: str | None, *, writes: str) -> None:
    """Run a script's `main` as `pipeline.run.start` does, or in its place the one beside it, NAME_many.py.

    That one runs if the command line has options that `make_parser` does not know, for another task than
    SST-2, and if a launcher started several processes.
    """
    options, more = make_parser(about).parse_known_args()
    several = any(os.environ.get(name, "1") != "1" for name in _COUNTS)
    if more or several or options.task != SST2.name:
        script = Path(sys.argv[0])
        sys.argv[0] = str(script.with_name(f"{script.stem}_many.py"))
        runpy.run_path(sys.argv[0], run_name="__main__")  # it exits
    start(main, about, writes=writes)
