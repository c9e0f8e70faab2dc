"""Is this machine ready? Prints versions, devices, whether both frameworks work, and remedies.

Every probe runs in a process of its own: a framework that crashes at import is one failed line. A
package that only some commands need may be absent: it is listed with what needs it.

exit 0 everything works that is installed, 1 something does not
"""

import shutil
import subprocess
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

from reprod_align.base.console import tell
from reprod_align.base.tasks import INSTALL
from reprod_align.errors import join_lines, one_line
from reprod_align.porting.paconvert import VERSION as PACONVERT

SETUP = "run `make setup`"
TIMEOUT = 300  # seconds; a first import on a cold disk can take a minute


@dataclass(frozen=True)
class HealthCheck:
    """Something that must work: code that prints what it found, and the remedy if it fails."""

    name: str
    code: str
    remedy: str = SETUP
    optional: Sequence[str] = ()
    """modules, or commands, that may be absent"""


_PAIR = """
import numpy, paddle, torch
from reprod_align import align

def make(nn, epsilon):
    norm = nn.LayerNorm(4, **{epsilon: 1e-12})
    return nn.Sequential(nn.Linear(3, 4), norm, nn.Dropout(0.5), nn.Linear(4, 2))

found = align(
    make(torch.nn, "eps"), make(paddle.nn, "epsilon"), {"input": numpy.eye(3)},
    torch_loss=lambda out: (out ** 2).mean(), paddle_loss=lambda out: (out ** 2).mean(),
    torch_optimizer=lambda model: torch.optim.AdamW(model.parameters(), weight_decay=0.01),
    paddle_optimizer=lambda model: paddle.optimizer.AdamW(parameters=model.parameters()),
)
assert found.passed, found.summary()
print("a small pair is judged faithful; no second interpreter is needed")
"""
"""what a version that lacks something fails at: hooks, dropout's masks, gradients, optimizer steps"""

_PRIVATE = """
import sys
from reprod_align.backends.{framework}.private import NAMES

missing = NAMES.list_missing()
if missing:
    sys.exit("; ".join(missing))
print(len(NAMES.rows), "of", len(NAMES.rows), "are there")
"""
"""the private names of a framework, and what is lost with those that its version lacks"""

PROBES = (
    HealthCheck(
        "Python 3.11 or newer",
        "import sys; assert sys.version_info >= (3, 11), sys.version; print(sys.version.split()[0])",
        "install Python 3.11 or newer",
    ),
    HealthCheck(
        "numpy: compare, diff, verify, submit, curves",
        "import numpy; print(numpy.__version__)",
        "pip install numpy",
    ),
    HealthCheck(
        "PyTorch computes",
        "import torch; from reprod_align.pair import torch_side; torch_side(torch.nn.Linear(2, 2));"
        "a = torch.ones(2, 2, dtype=torch.float64);"
        "assert (a @ a).sum() == 8;"
        "gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())];"
        "print(torch.__version__, 'on', ', '.join(['CPU', *gpus]))",
        "pip install torch scipy",
    ),
    HealthCheck(
        "Paddle computes",
        "import paddle; from reprod_align.pair import paddle_side; paddle_side(paddle.nn.Linear(2, 2));"
        "a = paddle.ones([2, 2], dtype='float64');"
        "assert float((a @ a).sum()) == 8;"
        "gpus = paddle.device.cuda.device_count() if paddle.is_compiled_with_cuda() else 0;"
        "names = [paddle.device.cuda.get_device_name(i) for i in range(gpus)];"
        "print(paddle.__version__, 'on', ', '.join(['CPU', *names]))",
        "pip install paddlepaddle reprod_log scipy",
    ),
    *(
        HealthCheck(
            f"private names of {name}",
            _PRIVATE.format(framework=framework),
            "docs/versions.md lists versions that have them all",
            optional=(framework,),
        )
        for framework, name in (("torch", "PyTorch"), ("paddle", "Paddle"))
    ),
    HealthCheck(
        "both in one process",
        _PAIR,
        "pair --torch-python PATH --paddle-python PATH takes an interpreter for each; or install the CPU "
        "build of one of the two: GPU builds often cannot be imported together",
    ),
    HealthCheck(
        "jinja2 and matplotlib: pages of --report",
        "import jinja2, matplotlib; print(jinja2.__version__, 'and', matplotlib.__version__)",
        "pip install jinja2 matplotlib",
        optional=("jinja2", "matplotlib"),
    ),
    HealthCheck(
        "dask and fsspec: --jobs, --cluster, weights at an address",
        "import aiohttp, distributed, fsspec;"
        "print('distributed', distributed.__version__, 'and fsspec', fsspec.__version__)",
        INSTALL,
        optional=("distributed", "fsspec"),
    ),
    HealthCheck(
        "PaConvert: port",
        "import importlib.util, importlib.metadata, shutil;"
        "print(importlib.metadata.version('paconvert') if importlib.util.find_spec('paconvert')"
        " else shutil.which('paconvert'))",
        f"pip install paconvert=={PACONVERT}",
        optional=("paconvert",),
    ),
)
PIPELINE_PROBES = (
    HealthCheck(
        "transformers", "import transformers as t; t.BertTokenizerFast; print(t.__version__)"
    ),
    HealthCheck("datasets", "import datasets; print(datasets.__version__)"),
    HealthCheck(
        "PaddleNLP", "import paddlenlp as p; p.transformers.BertTokenizer; print(p.__version__)"
    ),
    HealthCheck("torchmetrics", "import torchmetrics; print(torchmetrics.__version__)"),
    HealthCheck(
        "reprod_log",
        "import reprod_log; from importlib.metadata import version; print(version('reprod_log'))",
    ),
    HealthCheck(
        "the embedded MiniLM",
        "from pipeline.profiles import check_minilm; check_minilm(); print('sha256 as expected')",
    ),
)
"""what the scripts of a clone of the repository need besides"""


@dataclass(frozen=True)
class Examined:
    """The result of a probe: a version and devices, or the last line of the error."""

    probe: HealthCheck
    healthy: bool
    found: str
    absent: bool = False
    """a package that only some commands need is not installed"""


def examine(probe: HealthCheck) -> Examined:
    """Run one probe in a fresh interpreter."""
    lacking = [
        one for one in probe.optional if find_spec(one) is None and shutil.which(one) is None
    ]
    if lacking:
        return Examined(probe, True, f"{', '.join(lacking)} not installed", absent=True)
    command = [sys.executable, "-W", "ignore", "-c", probe.code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return Examined(probe, False, f"no answer in {TIMEOUT} s")
    output = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return Examined(
        probe, done.returncode == 0, output[-1] if output else f"exit {done.returncode}"
    )


def list_probes() -> tuple[HealthCheck, ...]:
    """Return what is examined: in a clone of the repository, what its scripts need too."""
    if find_spec("pipeline") is None:
        return PROBES
    # one command brings all packages that a clone's scripts need, and no others
    own = (replace(each, remedy=SETUP) if "pip install" in each.remedy
           and not {"paconvert", "distributed"} & {*each.optional} else each for each in PROBES)  # fmt: skip
    return (*own, *PIPELINE_PROBES)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare nothing: the command takes no arguments."""


def run(options: Namespace) -> int:
    """Examine everything, each line as soon as it is known; return 0 if all that is installed is healthy."""
    probes, healthy = list_probes(), True
    width = max(len(probe.name) for probe in probes)
    for probe in probes:
        tell(f"examining: {probe.name}")
        finding = examine(probe)
        tell("")
        name, found = probe.name.ljust(width), one_line(finding.found)
        if finding.absent:
            lines = [f"absent  {name}  {found}: {probe.remedy}"]
        elif finding.healthy:
            lines = [f"ok      {name}  {found}"]
        else:
            lines = [f"FAILED  {name}  {found}", f"        {' ' * width}  remedy: {probe.remedy}"]
        print(join_lines(lines), flush=True)
        healthy = healthy and finding.healthy
    return 0 if healthy else 1
