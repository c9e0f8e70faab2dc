"""A side's scripts without the seconds of imports: imports its libraries once, and forks for each script.

`pipeline.align` runs it as `python -m pipeline.side pt`, on Linux. A line of stdin asks for a script,
[words, file for its output]; the answer is [exit code, kilobytes]. Each script still has a process of its
own, and what it imports itself, it finds imported.
"""

import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from subprocess import PIPE

SHARED = ("loader", "metrics", "model", "optimizer", "learner", "sentences")
MODULES = {side: [f"pipeline.{side}.{name}" for name in SHARED] for side in ("pt", "pd")}
MODULES["checks"] = ["pipeline.checks", "reprod_log"]
"""what takes most of the time of importing, for the scripts of each side and for the checks"""


class Server:
    """The process that runs one side's scripts; without one, each script starts with nothing imported."""

    def __init__(self, prefix: str, environment: Mapping[str, str]) -> None:
        """Start it on Linux: elsewhere libraries do not bear a fork."""
        self.prefix, self.environment = prefix, environment
        self._process: subprocess.Popen[str] | None = None
        if sys.platform == "linux":
            words = [sys.executable, "-m", "pipeline.side", prefix]
            self._process = subprocess.Popen(
                words, stdin=PIPE, stdout=PIPE, text=True, env=os.environ | environment
            )

    def run(self, words: Sequence[str], output: str) -> tuple[int, int] | None:
        """Return a script's exit code and peak memory, its stdout in a file; None without a process."""
        if self._process is None:
            return None
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None and answers is not None
        answer = ""
        with suppress(OSError):
            requests.write(json.dumps([words, output]) + "\n")
            requests.flush()
            answer = answers.readline()
        if not answer:  # it could not import, or was killed
            self.stop()
            return None
        code, size = json.loads(answer)
        return code, size

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            with suppress(OSError):
                self._process.communicate()
            self._process = None


def main(side: str) -> None:
    """Run the scripts asked for, one after another."""
    with warnings.catch_warnings(), suppress(ImportError):  # a script that needs it will say so
        warnings.simplefilter("ignore")  # of libraries about themselves
        for name in MODULES[side]:
            import_module(name)
    gc.freeze()  # a script's collector leaves these pages shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the script; then stdin is closed
    for line in sys.stdin:
        words, output = json.loads(line)
        with warnings.catch_warnings():
            # Python 3.12 warns of the libraries' idle threads, which a fork leaves behind
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
        if process == 0:
            _become(words, output)
        _, status, usage = os.wait4(process, 0)
        print(json.dumps([os.waitstatus_to_exitcode(status), usage.ru_maxrss]), flush=True)


def _become(words: Sequence[str], output: str) -> None:
    """Do what `python WORDS` does, stdout in a file; end this process."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path, flags, descriptor in ((os.devnull, os.O_RDONLY, 0), (output, os.O_WRONLY, 1)):
        os.dup2(os.open(path, flags), descriptor)
    sys.argv, sys.path[0] = list(words), str(Path(words[0]).parent)
    runpy.run_path(words[0], run_name="__main__")
    sys.exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
