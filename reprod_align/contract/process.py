"""Starts the two sides of a proof, each in a process that gets no more than it needs."""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Self

from reprod_align.backends.recipes import Recipe
from reprod_align.base import Framework
from reprod_align.contract.guard import ARMED, DottedName
from reprod_align.contract.proof import REFUSALS, Refusal
from reprod_align.contract.terms import Terms
from reprod_align.model import Inputs
from reprod_align.pair.remote import Launch, RemoteSide, end_group

_PACKAGE: Final = Path(__file__).resolve().parents[1]
START: Final = (
    "import sys; folder, module = sys.argv[1:3]; sys.path.insert(0, folder); import reprod_align; "
    "sys.path.remove(folder); import runpy; sys.argv[:3] = sys.argv[:1]; "
    "runpy.run_module(module, run_name='__main__', alter_sys=True)"
)
"""what `python -I -c` runs: this package, and nothing that lies beside it"""
_LOOKUPS: Final = "lookups.json"
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
                "LD_LIBRARY_PATH", "TZ")  # fmt: skip
"""of the environment; a process of a proof gets nothing else of it"""


class ProofSide(RemoteSide):
    """One side of a proof. Use it as a context manager."""

    def __init__(
        self,
        terms: Terms,
        framework: Framework,
        recipe: Recipe | None,
        python: str,
        lookups: Sequence[DottedName] = (),
    ) -> None:
        """Copy the side's files into a folder of their own, and start a process that works there."""
        self.armed = False
        """whether the port's own code has begun to run, as far as `list_refusals` has read"""
        self.folder, self._pipe, self._guarded = Path(), -1, framework == "paddle"
        with ExitStack() as stack:
            self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proof_")))
            file = self._copy_files(terms)
            (self.folder / "work").mkdir()
            self._pipe, theirs = os.pipe()
            os.set_blocking(self._pipe, False)
            os.set_blocking(theirs, False)  # a full pipe must not stop the port's process
            stack.callback(os.close, self._pipe)
            options = {
                "guarded": self._guarded,
                "pipe": theirs,
                "packages": terms.packages,
                "recipe": asdict(recipe) if recipe else None,
                "lookups": str(self.folder / _LOOKUPS) if self._guarded else "",
            }
            text = json.dumps([[one.place, one.name, one.use] for one in lookups])
            (self.folder / _LOOKUPS).write_text(text)
            try:
                launch = make_launch(
                    python, "child", options, self.folder, "work", terms.megabytes * 2**20
                )
                alone = ("unshare", "-rn", "--") if self._guarded and can_unshare() else ()
                command = (*alone, *launch.command)
                launch = replace(launch, command=command, pipes=(theirs,), seconds=terms.seconds)
                super().__init__(python, file, framework, launch=launch)
            finally:
                os.close(theirs)
            self._kept = stack.pop_all()

    def _copy_files(self, terms: Terms) -> Path:
        """Copy the side's files, and return where the one that makes the model lies then."""
        main, files, root = terms.port, list(terms.port_files), terms.port_folder
        if not self._guarded:
            main, files = terms.reference, list(terms.reference_files)
            root = Path(os.path.commonpath([one.parent for one in files]))
        target = self.folder / "side"
        places = {
            one: target / (one.relative_to(root) if one.is_relative_to(root) else one.name)
            for one in files
        }
        for one, place in places.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(one, place, follow_symlinks=False)
        return places[main]

    def __enter__(self) -> Self:
        """Return this side."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process, and all that it started, and remove its folder."""
        end_group(self._process.pid)
        super().__exit__(*error)
        self._kept.close()

    def list_refusals(self) -> list[Refusal]:
        """Return what the guard has told so far: read from the pipe, once each."""
        data = b""
        with suppress(BlockingIOError):
            while block := os.read(self._pipe, 2**16):
                data += block
        lines = data.splitlines()
        if lines[:1] == [ARMED]:
            self.armed = True
            lines = lines[1:]
        found = []
        for line in (one.decode(errors="replace") for one in lines):
            code, _, text = line.partition("\\t")
            found.append(Refusal(code if code in REFUSALS else "inspects-the-judge", text))
        return found

    def list_changes(self) -> list[Refusal]:
        """Return the functions that are others now than before the port was loaded."""
        return [
            Refusal(code, f"{name} is another function now")
            for code, name in self._ask("list_changes")
        ]

    def break_layers(self, inputs: Inputs, paths: Sequence[str]) -> list[str]:
        """Return which of the named layers raise an exception that the model swallows."""
        found: list[str] = self._ask("break_layers", inputs, list(paths))
        return found

    def list_losses(
        self, batches: Sequence[Inputs], seed: int, places: Mapping[str, str]
    ) -> list[float]:
        """Return the losses of training one step on each batch."""
        losses: list[float] = self._ask("list_losses", list(batches), seed, dict(places))
        return losses

    def save(self, name: str) -> Path:
        """Let the framework write the state dict; return where it lies."""
        path = self.folder / "work" / name
        self._ask("save", str(path))
        return path

    def restore(self, path: Path) -> None:
        """Let the framework load a state dict."""
        place = self.folder / "work" / path.name
        shutil.copyfile(path, place)
        self._ask("restore", str(place))


def make_launch(
    python: str, module: str, options: Mapping[str, Any], folder: Path, work: str, memory: int
) -> Launch:
    """Return how a process starts that gets no more than it needs.

    module: of this package, given `options` as JSON before all other words. folder: its home; work: below
    it, where it works. memory: bytes that it may take.
    """
    command = (python, "-IB", "-c", START, str(_PACKAGE.parent), f"{__package__}.{module}")
    return Launch(
        (*command, json.dumps(options)),
        clear_environment(folder),
        folder / work,
        prepare=partial(_limit_process, memory),
    )


def clear_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a process that works in `folder`: nothing of ours that it does not need."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    places = {"HOME": str(folder), "TMPDIR": str(folder), "XDG_CACHE_HOME": str(folder)}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    return kept | places | offline


def _limit_process(memory: int) -> None:
    """Set limits of the new process: bytes of memory, no core files, files of at most 64 GiB."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**36, 2**36))
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))


@cache
def can_unshare() -> bool:
    """Tell whether a process can be given a network of its own, without connections."""
    if not (sys.platform == "linux" and shutil.which("unshare")):
        return False
    try:
        done = subprocess.run(["unshare", "-rn", "true"], capture_output=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def describe_isolation() -> list[str]:
    """Return, in words, what separates the port's process from the rest here."""
    network = (
        "without network" if can_unshare() else "with the network, which could not be taken away"
    )
    return ["a process and a folder of its own", "its environment cleared", network,
            "PyTorch hidden", "the reference runs after it has ended"]  # fmt: skip
