"""Run the whole pipeline: weights, then the five steps, both sides at once, and a table at the end.

`make align` runs this. Every script runs in a process of its own, as a user would run it by hand; on Linux
the processes of a side start with its libraries imported (`pipeline/side.py`).

exit    0 every step passed, 1 a step failed or could not run, 2 nothing could be run
"""

import json
import os
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import IO

from pipeline.checks import build_gate, collect_page, found_file
from pipeline.run import REPOSITORY, Run, start
from pipeline.side import Server
from reprod_align.base.files import write_text
from reprod_align.errors import ReprodError
from reprod_align.page.outputs import render_junit, render_markdown, write_report
from reprod_align.records.compare import OFFICIAL

from tabulate import tabulate
from tqdm import tqdm

PREPARATION = (  # the scripts of one line can run at the same time
    ("fake_data/gen_fake_data.py", "weights/torch_bert_weight.py"),
    ("weights/torch2paddle.py", "classifier_weights/generate_classifier_weights.py"),
)
PREPARED = "--prepared"

HEADERS = ("step", "official", "strict", "worst tensor (strict)", "relative difference", "seconds")


@dataclass(frozen=True)
class Step:
    """One acceptance step: its scripts (without pt_ or pd_), and the comparisons its check makes."""

    number: int
    scripts: tuple[str, ...]
    gates: tuple[str, ...]

    def side(self, prefix: str) -> list[str]:
        """Return the scripts of one side ("pt" or "pd")."""
        return [f"pipeline/Step{self.number}/{prefix}_{script}.py" for script in self.scripts]

    @property
    def check(self) -> str:
        """The script that judges what both sides wrote."""
        return f"pipeline/Step{self.number}/check_step{self.number}.py"


STEPS = (
    Step(1, ("forward_bert",), ("forward",)),
    Step(2, ("data", "metric"), ("data", "metric")),
    Step(3, ("loss",), ("loss",)),
    Step(4, ("lr_scheduler", "bp"), ("lr", "bp_align")),
    Step(5, ("train",), ("train_align",)),
)


@dataclass(frozen=True)
class Finished:
    """How a script ended: exit code, seconds, and the most memory its process held (MiB)."""

    script: str
    code: int
    seconds: float
    memory: float


@dataclass(frozen=True)
class Outcome:
    """How a step ended: what ran, and the seconds of its slower side and of its check."""

    step: Step
    finished: tuple[Finished, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every script ran and the check passed."""
        return all(done.code == 0 for done in self.finished)


def main(run: Run) -> int:
    """Prepare, run every step, print the table; return 0 only if everything passed."""
    _require_home(run)
    for scripts in () if run.options.prepared else PREPARATION:
        with ThreadPoolExecutor() as pool:
            finished = pool.map(lambda script: _run_script(script, run, {}), scripts)
        if any(done.code != 0 for done in finished):
            return 1
    _remove_results(run)
    outcomes = _run_steps(run)
    rows = [row for outcome in outcomes for row in _build_rows(outcome, run)]
    print(tabulate(rows, headers=HEADERS, disable_numparse=True))
    page = _write_pages(run, outcomes)
    print(f"\nresults: {run.home / 'log_reprod'}\nreport: {page}")
    return 0 if all(outcome.passed for outcome in outcomes) else 1


def _write_pages(run: Run, outcomes: Sequence[Outcome]) -> Path:
    """Write the report as a web page, as a table to paste and for a build server; return the first."""
    rows = [
        (f"{outcome.step.number} {name}", name, f"{outcome.seconds:.1f}" if first else "")
        for outcome in outcomes
        for first, name in ((name == outcome.step.gates[0], name) for name in outcome.step.gates)
    ]
    page = collect_page(run, "make align", rows)
    html, table, tests = _list_pages(run)
    write_text(table, render_markdown(page))
    write_text(tests, render_junit(page))
    write_report(html, page)
    return html


def _list_pages(run: Run) -> list[Path]:
    """Return where the report goes: as a web page, as a table, as tests."""
    return [run.results / f"report.{kind}" for kind in ("html", "md", "xml")]


def _require_home(run: Run) -> None:
    """Raise ReprodError unless results can be written: said once, before every script says it."""
    folder = run.home / "log_reprod"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ReprodError(f"--home {run.home}: cannot be written to: {error.strerror}") from error


def _remove_results(run: Run) -> None:
    """Remove what earlier runs wrote: a step whose scripts fail must not be judged by it."""
    for path in _list_pages(run):
        path.unlink(missing_ok=True)
    for name in (name for step in STEPS for name in step.gates):
        gate = build_gate(run, name, ())
        kept = found_file(run, name)
        for path in (*gate.official, *gate.strict, gate.log, gate.result_file, kept):
            path.unlink(missing_ok=True)


def _run_steps(run: Run) -> list[Outcome]:
    """Run each side's scripts in order, the sides at the same time; check a step once both are done."""
    sides = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
    servers = [_start_server(prefix, position) for position, prefix in enumerate(("pt", "pd"))]
    checks = Server("checks", {})
    jobs = [
        [pool.submit(_run_side, step.side(server.prefix), run, server) for step in STEPS]
        for pool, server in zip(sides, servers, strict=True)
    ]
    try:
        return [
            _check(step, pt.result(), pd.result(), run, checks)
            for step, pt, pd in zip(STEPS, *jobs, strict=True)
        ]
    finally:  # after Ctrl-C, what has not begun must not begin
        _stopped.set()
        for pool, server in zip(sides, servers, strict=True):
            pool.shutdown(cancel_futures=True)
            server.stop()
        checks.stop()


_stopped = threading.Event()


def _start_server(prefix: str, position: int) -> Server:
    threads = str(max(1, (os.cpu_count() or 1) // 2))  # the other side needs its share
    return Server(prefix, {"OMP_NUM_THREADS": threads, "TQDM_POSITION": str(position)})


def _run_side(scripts: Sequence[str], run: Run, server: Server) -> list[Finished]:
    return [
        _run_script(script, run, server.environment, server)
        for script in scripts
        if not _stopped.is_set()
    ]


def _check(step: Step, pt: list[Finished], pd: list[Finished], run: Run, server: Server) -> Outcome:
    check = _run_script(step.check, run, {}, server)
    slower = max(sum(done.seconds for done in side) for side in (pt, pd))
    return Outcome(step, (*pt, *pd, check), slower + check.seconds)


def _run_script(
    script: str, run: Run, environment: Mapping[str, str], server: Server | None = None
) -> Finished:
    """Run one script, its stdout kept back unless it fails, its progress bar and errors shown."""
    words = [str(REPOSITORY / script), *(word for word in sys.argv[1:] if word != PREPARED)]
    begun = time.monotonic()
    with NamedTemporaryFile("w+") as output:
        ended = server.run(words, output.name) if server else None
        code, size = ended or _run_anew(words, output, environment)
        seconds = time.monotonic() - begun
        output.seek(0)
        failure = output.read() if code else ""
    memory = size / (1024 if sys.platform == "linux" else 1024**2)
    state = "ok" if code == 0 else f"exit {code}"
    tqdm.write(f"{state:7} {seconds:6.1f} s  {memory:5.0f} MiB  {script}\n{failure}".rstrip())
    return Finished(script, code, seconds, memory)


def _run_anew(
    words: Sequence[str], output: IO[str], environment: Mapping[str, str]
) -> tuple[int, int]:
    """Run a script with nothing imported; return its exit code and peak memory, in the system's unit."""
    words = [sys.executable, *words]
    process = subprocess.Popen(words, stdout=output, env=os.environ | environment)
    _, status, usage = os.wait4(process.pid, 0)  # Popen.wait would not tell the memory
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss


def _build_rows(outcome: Outcome, run: Run) -> Iterator[tuple[str, ...]]:
    """Return a line of the final table for each comparison the step's check made."""
    seconds = f"{outcome.seconds:.1f}"
    for name in outcome.step.gates:
        yield (
            f"{outcome.step.number} {name}",
            *_read_verdict(build_gate(run, name, ()).result_file),
            seconds,
        )
        seconds = ""


def _read_verdict(result_file: Path) -> tuple[str, ...]:
    """Return the cells of the final table that a check's JSON result fills."""
    try:
        result = json.loads(result_file.read_text())
    except (OSError, ValueError):
        return ("not run", "not run", "", "")
    if result["strict"] is None:
        return ("not compared", "not compared", "", "")
    words = ["passed" if result[kind]["passed"] else "FAILED" for kind in ("official", "strict")]
    if result["strict"]["rule"]["name"] == OFFICIAL:
        words[1] = "not judged"
    worst = result["strict"]["worst"]
    difference = worst.get("max_rel", worst["reason"])
    shown = f"{difference:.1e}" if isinstance(difference, float) else str(difference)
    return (*words, worst["key"], shown)


def add_options(parser: ArgumentParser) -> None:
    """Add this run's own option."""
    parser.add_argument(
        PREPARED, action="store_true", help="keep the weights and fake data of --home"
    )


if __name__ == "__main__":
    start(main, __doc__, add_options)
