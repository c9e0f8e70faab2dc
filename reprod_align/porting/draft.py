"""The draft of a port: PaConvert, run in a process of its own."""

import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reprod_align.errors import ReprodError, first_line

VERSION: Final = "3.3.1"
_MARK: Final = ">>>>>>"  # before a line that PaConvert did not convert
_PATIENCE: Final = 600  # seconds
_MAIN: Final = "from paconvert.main import main; main()"


_PACKAGES: Final = {"torchvision": "", "torchaudio": "paddlespeech", "timm": "", "kornia": "",
                    "transformers": "paddleformers", "diffusers": "", "accelerate": ""}  # fmt: skip
"""packages beside PyTorch whose names PaConvert changes too -> what it then imports, if not paddle"""


@dataclass(frozen=True)
class Draft:
    """A source file, converted."""

    text: str
    helpers: str = ""
    """the content of paddle_utils.py, which the draft imports; "" without it"""
    calls: int = 0
    """PyTorch calls that were found"""
    left: tuple[str, ...] = ()
    """the lines that are not converted"""
    proven: int = 0
    """calls that gave what was recorded, run on Paddle by themselves"""
    unproven: tuple[str, ...] = ()
    """calls that ran, and of which no candidate gave what was recorded"""
    unseen: tuple[str, ...] = ()
    """calls that never ran"""
    failure: str = ""
    """the error of the gathered file, "" if it runs"""
    author: str = "PaConvert"
    rounded: tuple[str, ...] = ()
    """calls among the proven ones that gave what was recorded to float32's precision"""


def find_converter() -> list[str]:
    """Return the command that runs PaConvert. Raises ReprodError if it is not installed."""
    if importlib.util.find_spec("paconvert"):
        return [sys.executable, "-c", _MAIN]
    found = shutil.which("paconvert")
    if found:
        return [found]
    raise ReprodError(
        f"paconvert, which writes the draft, is not installed: pip install paconvert=={VERSION}, here or "
        "in an environment of its own whose bin folder is on PATH"
    )


def make_draft(name: str, text: str, package: str = "") -> Draft:
    """Return the draft of a source file; `name` is the file's. Raises ReprodError if PaConvert fails.

    package: the source's own; what is imported from it stays.
    """
    command = find_converter()
    with TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        before.mkdir()
        (before / name).write_text(text, encoding="utf-8")
        words = [*command, "-i", str(before / name), "-o", str(after / name)]
        kept = [known for known in _PACKAGES if known == package or _lacks_target(known)]
        words += [
            "--log_level",
            "WARNING",
            *(["--exclude_packages", ",".join(kept)] if kept else []),
        ]
        said = _run(words, folder)
        if not (after / name).is_file():
            raise ReprodError(f"PaConvert wrote no draft of {name}: {first_line(said[-1000:])}")
        helpers = after / "paddle_utils.py"
        return read_draft(
            (after / name).read_text(encoding="utf-8"),
            helpers.read_text(encoding="utf-8") if helpers.is_file() else "",
            said,
        )


def _lacks_target(package: str) -> bool:
    """Tell whether what PaConvert puts in place of a package is not installed."""
    return bool(_PACKAGES[package]) and not importlib.util.find_spec(_PACKAGES[package])


def read_draft(text: str, helpers: str = "", said: str = "") -> Draft:
    """Return a draft without PaConvert's marks, from what it wrote and what it printed."""
    lines = text.splitlines()
    left = tuple(line.removeprefix(_MARK).strip() for line in lines if line.startswith(_MARK))
    plain = "\n".join(line.removeprefix(_MARK) for line in lines) + "\n"
    calls = re.search(r"There are (\d+) Pytorch APIs", said)
    return Draft(plain, helpers, int(calls[1]) if calls else 0, left)


def _run(words: list[str], folder: str) -> str:
    """Return what a command printed. Raises ReprodError if it fails."""
    try:
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=_PATIENCE,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except OSError as error:
        raise ReprodError(f"cannot start {words[0]}: {error.strerror or error}") from error
    except subprocess.TimeoutExpired as error:
        raise ReprodError(f"PaConvert took longer than {_PATIENCE} s") from error
    if done.returncode:
        last = next(filter(None, reversed(done.stderr.splitlines())), "nothing on stderr")
        raise ReprodError(f"PaConvert ended with exit code {done.returncode}: {last[:300]}")
    return done.stdout + done.stderr
