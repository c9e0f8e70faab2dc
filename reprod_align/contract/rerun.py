"""Recomputes steps of a submission from its code, weights and inputs, and compares with what was submitted.

A file alone cannot show where its numbers come from. Each side's scripts run in a copy of the code that has
no record in it, each script in a process of its own, where the other framework cannot be found.
"""

import os
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Final

from reprod_align.base import FRAMEWORKS
from reprod_align.base.text import count
from reprod_align.contract.process import make_launch
from reprod_align.errors import MissingInputError, ReprodError, join_lines, one_line
from reprod_align.pair.remote import end_group, start_process
from reprod_align.records import load_record, unread_items
from reprod_align.records.compare import EXACT, STRICT, Comparison, compare_records, official_rule
from reprod_align.records.gate import digest
from reprod_align.submission import check_sources, find_code
from reprod_align.submission.files import GUIDE_FOLDER, STEPS, GuideStep, Submission
from reprod_align.submission.findings import Verification

SECONDS: Final = 1800.0
NAMED: Final = "rerun.toml"
"""names the scripts of a submission whose layout is another one"""
_PREFIXES: Final = {"torch": "pt", "paddle": "pd"}
_SCRIPTS: Final = {
    "forward": "forward*", "metric": "metric*", "loss": "loss*", "bp_align": "bp*",
    "train_align": "train*",
}  # fmt: skip
"""step -> what the name of its script begins with, after pt_ or pd_"""
_LEFT_OUT: Final = (GUIDE_FOLDER, ".git", ".venv", "__pycache__", "site", "node_modules", ".*cache",
                    "*.zip")  # fmt: skip
_MOST_BYTES: Final = 16 * 2**30
_MEMORY: Final = 2**36  # bytes that a script may take
FORGED: Final = "not recomputed"
"""the kind of fault: what was submitted is not what its code computes"""


@dataclass(frozen=True)
class Command:
    """One script to run."""

    step: str
    side: str
    script: Path
    """below the folder of the code"""
    words: tuple[str, ...]

    def show(self) -> str:
        """Return it as one would type it."""
        return " ".join(["python", self.script.as_posix(), *self.words])


@dataclass
class RerunResult:
    """What was recomputed."""

    code: Path
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)
    """step, side, precision, what came out"""
    seconds: float = 0.0

    def summary(self) -> str:
        """Return a line for each record."""
        lines = [f"recomputed from {self.code} in {self.seconds:.0f} s:"]
        return join_lines([*lines, *("  " + "  ".join(row) for row in self.rows)])


def list_commands(code: Path, steps: Sequence[str], words: Sequence[str] = ()) -> list[Command]:
    """Return the scripts of these steps that a folder has, Paddle's first.

    Known are StepN/pt_NAME.py and pd_NAME.py, as the guide has them, and steps_pt.py STEP, as
    `reprod-align new` writes them; rerun.toml names the scripts of any other layout. words: further
    arguments of each. Raises MissingInputError without a script, ReprodError for a rerun.toml that is wrong.
    """
    found, named = [], _read_named(code)
    for side in reversed(FRAMEWORKS):
        for step in STEPS:
            if step.name in steps:
                script, further = named.get((side, step.name)) or _find_script(
                    code, step, _PREFIXES[side]
                )
                found.append(Command(step.name, side, script, (*further, *words)))
    return found


def _read_named(code: Path) -> dict[tuple[str, str], tuple[Path, tuple[str, ...]]]:
    """Return the scripts that rerun.toml names, and their words, by side and step."""
    path = code / NAMED
    if not path.is_file():
        return {}
    try:
        made = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReprodError(f"{path} cannot be read as TOML: {str(error)[:200]}") from error
    named: dict[tuple[str, str], tuple[Path, tuple[str, ...]]] = {}
    for side, steps in made.items():
        if side not in FRAMEWORKS or not isinstance(steps, dict):
            raise ReprodError(f"{path}: {side}: expected the tables {' and '.join(FRAMEWORKS)}")
        for name, text in steps.items():
            if name not in _SCRIPTS or not isinstance(text, str):
                known = ", ".join(_SCRIPTS)
                raise ReprodError(f"{path}: {side}.{name}: expected a text for one of {known}")
            named[side, name] = _read_script(path, f"{side}.{name}", text)
    return named


def _read_script(path: Path, place: str, text: str) -> tuple[Path, tuple[str, ...]]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ReprodError(f"{path}: {place}: {error}") from error
    script = Path(words[0]) if words else Path()
    if script.suffix != ".py" or script.is_absolute() or ".." in script.parts:
        raise ReprodError(
            f"{path}: {place}: expected a Python script below {path.parent} and its arguments, got {text!r}"
        )
    if not (path.parent / script).is_file():
        raise MissingInputError(f"{path}: {place}: {script} is missing")
    return script, tuple(words[1:])


def _find_script(code: Path, step: GuideStep, prefix: str) -> tuple[Path, tuple[str, ...]]:
    own = [Path(f"steps_{prefix}.py"), Path("pipeline") / f"steps_{prefix}.py"]
    for path in own:
        if (code / path).is_file():
            return path, (step.name,)
    pattern = f"Step{step.number}/{prefix}_{_SCRIPTS[step.name]}.py"
    for root in (code, code / "pipeline"):
        matches = sorted(root.glob(pattern))
        if matches:
            return matches[0].relative_to(code), ()
    raise MissingInputError(
        f"{code} has no script for {step.name}: expected {pattern}, steps_{prefix}.py, or its name in "
        f"{NAMED}; --code names the folder with the submission's code"
    )


def rerun(
    submission: Submission,
    code: Path,
    commands: Sequence[Command],
    findings: Verification,
    python: str = sys.executable,
    seconds: float = SECONDS,
    tell: Callable[[str], None] = lambda text: None,
) -> RerunResult:
    """Run the commands in copies of `code`; add to `findings` what was submitted and is not recomputed.

    seconds: that each script may take. tell: is given each command before it runs. Raises ReprodError if
    the code is too large or cannot be copied.
    """
    begun, result = time.monotonic(), RerunResult(code)
    if find_code(submission.source) != code:  # else `verify` has done it
        check_sources(submission, code, findings)
    for side in reversed(FRAMEWORKS):
        own = [one for one in commands if one.side == side]
        if own:
            with TemporaryDirectory(prefix="rerun_") as temporary:
                folder = Path(temporary)
                _copy_code(code, folder / "code")
                _remove_copies(submission, folder / "code", findings)
                for command in own:
                    tell(command.show())
                    _rerun_one(submission, folder, command, findings, result, python, seconds)
    result.seconds = time.monotonic() - begun
    return result


def _copy_code(code: Path, target: Path) -> None:
    """Copy the code without records, links and environments."""
    size = sum(path.stat().st_size for path in _walk(code))
    if size > _MOST_BYTES:
        raise ReprodError(f"{code} holds {size} bytes: give --code the folder with the code alone")
    try:
        shutil.copytree(code, target, ignore=_ignore, symlinks=True)
    except (OSError, shutil.Error) as error:
        raise ReprodError(f"{code} cannot be copied: {str(error)[:200]}") from error


def _remove_copies(submission: Submission, code: Path, findings: Verification) -> None:
    """Remove from the copied code what is a record under another name, and add a fault for it."""
    names = (name for step in STEPS for side in FRAMEWORKS
             for name in (*step.records(side), step.name_twin(side)))  # fmt: skip
    records = [name for name in names if name in submission.files]
    sizes = {submission.files[name].stat().st_size for name in records}
    alike = [path for path in _walk(code) if path.stat().st_size in sizes]
    known = {digest(submission.files[name]): name for name in records} if alike else {}
    for path in alike:
        name = known.get(digest(path))
        if name is not None:
            path.unlink()
            text = f"{path.relative_to(code)} in the code is a copy of {name}; it was left out"
            findings.add(FORGED, text)


def _ignore(folder: str, names: list[str]) -> set[str]:
    links = {name for name in names if os.path.islink(os.path.join(folder, name))}
    return {*shutil.ignore_patterns(*_LEFT_OUT)(folder, names)} | links


def _walk(code: Path) -> Iterator[Path]:
    for folder, inner, names in os.walk(code):
        left_out = _ignore(folder, [*inner, *names])
        inner[:] = [name for name in inner if name not in left_out]
        yield from (Path(folder, name) for name in names if name not in left_out)


def _rerun_one(
    submission: Submission,
    folder: Path,
    command: Command,
    findings: Verification,
    result: RerunResult,
    python: str,
    seconds: float,
) -> None:
    fault = _run_script(folder, command, python, seconds)
    if fault:
        findings.add(FORGED, f"{command.step}: {command.show()} {fault}")
        result.rows.append((command.step, command.side, "", fault))
        return
    step = next(one for one in STEPS if one.name == command.step)
    names = [step.records(command.side)[-1], step.name_twin(command.side)]
    if not any(name in submission.files for name in names):
        result.rows.append((step.name, command.side, "", "not submitted, so not compared"))
    for name in (one for one in names if one in submission.files):
        fresh = _find_fresh(folder / "code", name)
        if fresh is None:
            findings.add(FORGED, f"{name}: {command.show()} does not write it")
            continue
        strict = name.startswith("strict/")
        found = _compare(submission.files[name], fresh, step, strict)
        same = digest(submission.files[name]) == digest(fresh)
        said = "the same file" if same else found.headline
        result.rows.append((step.name, command.side, "float64" if strict else "float32", said))
        if not found.passed:
            findings.add(FORGED, f"{name} is not what {command.show()} computes: {found.reason}")


def _find_fresh(code: Path, name: str) -> Path | None:
    for path in (code / GUIDE_FOLDER / name, code / "pipeline" / GUIDE_FOLDER / name):
        if path.is_file() and not path.is_symlink():
            return path
    return None


def _compare(submitted: Path, fresh: Path, step: GuideStep, strict: bool) -> Comparison:
    """Hold a record against the one recomputed, by the rule that holds between frameworks."""
    rule = EXACT if step.exact else STRICT if strict else official_rule(step.threshold)
    ours, theirs = (dict(unread_items(load_record(path))) for path in (fresh, submitted))
    return compare_records(ours, theirs, rule=rule)


def _run_script(folder: Path, command: Command, python: str, seconds: float) -> str:
    """Run one script; return what went wrong, as the end of a sentence, "" if nothing did."""
    launch = make_launch(python, "script", {"side": command.side}, folder, "code", _MEMORY)
    words = (str(launch.folder / command.script), *command.words)
    with TemporaryFile() as said:
        process = start_process(launch, words, said)
        try:
            ended = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"did not end within {seconds:g} s"
        finally:
            end_group(process.pid)
            process.kill()  # where it leads no group yet
            process.wait()
        said.seek(0)
        lines = [one.strip() for one in said.read().decode(errors="replace").splitlines()]
    if ended == 0:
        return ""
    last = next((line for line in reversed(lines) if line), "without a word")
    return f"ended with exit code {ended}: {one_line(last)[:200]}"


def choose_code(source: Path, given: Path | None) -> Path:
    """Return the folder with a submission's code: the given one, or that of a folder that was handed in.

    Raises MissingInputError where neither is there.
    """
    if given is not None:
        if not given.is_dir():
            raise MissingInputError(f"--code {given} is not a folder")
        return given.resolve()
    found = find_code(source)
    if found is not None:
        return found
    raise MissingInputError(
        "--rerun needs the submission's code, which an archive does not hold: give --code FOLDER"
    )


def announce(code: Path, commands: Sequence[Command], seconds: float) -> str:
    """Return what will run, before it does."""
    lines = [
        f"--rerun will run {count(len(commands), 'script')} of {code}, in copies of it, with your "
        f"rights, at most {seconds:g} s each:"
    ]
    lines += [
        f"  {one.side}: {one.show()}  (SHA-256 {digest(code / one.script)[:12]})"
        for one in commands
    ]
    return join_lines(lines)
