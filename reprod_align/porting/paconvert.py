"""The draft of a port; PaConvert's, run in a process of its own, and what makes plain Paddle of it."""

import ast
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

from reprod_align.errors import ReprodError, first_line
from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.calls.draft import Draft
from reprod_align.porting.loop import Course, DraftEdit, Judge, show_diff

VERSION: Final = "3.3.1"
_MARK: Final = ">>>>>>"  # before a line that PaConvert did not convert
_PATIENCE: Final = 600  # seconds
_MAIN: Final = "from paconvert.main import main; main()"


_PACKAGES: Final = {"torchvision": "", "torchaudio": "paddlespeech", "timm": "", "kornia": "",
                    "transformers": "paddleformers", "diffusers": "", "accelerate": ""}  # fmt: skip
"""packages beside PyTorch whose names PaConvert changes too -> what it then imports, if not paddle"""


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


Style = Literal["paddle", "compat"]


@dataclass(frozen=True)
class PlainName:
    """A name that PaConvert writes, and Paddle's own, with the keywords that differ."""

    before: str
    after: str
    keywords: Mapping[str, str] = field(default_factory=dict)

    def propose(self, code: Code) -> Iterator[Edit]:
        """Yield the edits of every place that reads the name."""
        for node in code.nodes:
            if isinstance(node, ast.Attribute) and dotted(node) == self.before:
                if self.before != self.after:
                    yield code.replace(node, self.after)
            elif isinstance(node, ast.Call) and dotted(node.func) == self.before:
                for keyword in node.keywords:
                    name = self.keywords.get(keyword.arg or "")
                    if name:
                        yield code.rename_keyword(keyword, name)


_EPSILON: Final = {"eps": "epsilon"}
_BIAS: Final = {"bias": "bias_attr"}
_AXIS: Final = {"dim": "axis"}
RULES: Final = (
    PlainName("paddle.nn.Module", "paddle.nn.Layer"),
    PlainName("paddle.nn.ModuleList", "paddle.nn.LayerList"),
    PlainName("paddle.nn.ModuleDict", "paddle.nn.LayerDict"),
    PlainName("paddle.compat.nn.Linear", "paddle.nn.Linear", _BIAS),
    PlainName("paddle.compat.nn.functional.softmax", "paddle.nn.functional.softmax", _AXIS),
    PlainName("paddle.compat.nn.Softmax", "paddle.nn.Softmax", _AXIS),
    *(PlainName(f"paddle.nn.Conv{n}d", f"paddle.nn.Conv{n}D", _BIAS) for n in (1, 2, 3)),
    *(PlainName(f"paddle.nn.ConvTranspose{n}d", f"paddle.nn.Conv{n}DTranspose", _BIAS) for n in (1, 2, 3)),
    *(PlainName(f"paddle.nn.{name}", f"paddle.nn.{name}", _EPSILON)
      for name in ("LayerNorm", "GroupNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D")),
    PlainName("paddle.cat", "paddle.concat", _AXIS),
    *(PlainName(f"paddle.{name}", f"paddle.{name}", _AXIS)
      for name in ("stack", "sum", "mean", "argmax", "squeeze", "unsqueeze", "softmax")),
)  # fmt: skip
_REASON: Final = "--style paddle: Paddle's own names and keywords."


def write_plainly(course: Course, judge: Judge, name: str) -> None:
    """Apply the rules to a faithful port; a rule that would cost the verdict is left out."""
    rules = [rule for rule in RULES if list(rule.propose(course.code))]
    if not course.outcome.passed or not rules:
        return
    before, code = course.code, _apply(course.code, rules)
    outcome = judge(code)
    if not outcome.passed:
        code, outcome = before, course.outcome
        for rule in rules:
            tried = _apply(code, [rule])
            told = judge(tried)
            if told.passed:
                code, outcome = tried, told
    if code.text != before.text:
        diff = show_diff(before.text, code.text, name)
        course.steps.append(DraftEdit("plain Paddle is asked for", "style", _REASON, "", diff))
        course.code, course.outcome = code, outcome


def _apply(code: Code, rules: list[PlainName]) -> Code:
    return code.apply([edit for rule in rules for edit in rule.propose(code)])
