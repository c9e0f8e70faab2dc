"""What the guard refuses: where the names of a port lead, and what its code asks for while it runs."""

import json
from pathlib import Path

from reprod_align.contract.guard import HIDDEN, look_up
from reprod_align.contract.screen import screen_files
from tests.conftest import run_python
from tests.contract.cheats import HONEST

import pytest

ASKED = {
    "imports-torch": "import torch",
    "imports-torch later": "def f():\n    import torch.nn\nf()",
    "imports-the-judge": "import reprod_align.pair.wire",
    "reads-files": "open('/etc/hostname').read()",
    "reads-files by a library": "import linecache, tokenize; tokenize.open('/etc/hosts')",
    "reads-files listed": "import os; os.listdir('/')",
    "reads-proc": "open('/proc/self/environ', 'rb')",
    "writes-files": "open('x', 'w')",
    "writes-files by os": "import os; os.mkdir('made')",
    "starts-processes": "import subprocess; subprocess.run(['true'])",
    "starts-processes by os": "import os; os.system('true')",
    "uses-ctypes": "import ctypes; ctypes.CDLL(None)",
    "uses-the-network": "import socket; socket.socket()",
    "runs-text": "eval('1')",
    "inspects-the-judge": "import gc; gc.get_objects()",
    "inspects-the-judge by frames": "import sys; sys._getframe()",
    "inspects-the-judge by a trace": "import sys; sys.settrace(None)",
    "ends-the-process": "import os, signal; os.kill(os.getpid(), 0)",
}
HARMLESS = (
    "from collections import namedtuple; namedtuple('P', 'x y')",
    "from dataclasses import dataclass\n@dataclass\nclass C:\n    x: int = 0",
    "import enum, typing, decimal, fractions",
    "import numpy.polynomial",
    "open(__file__).read()",
    "try:\n    import torch_is_not_this\nexcept ImportError:\n    pass",
    "import warnings; warnings.warn('x', stacklevel=1)",
)
PROGRAM = """
import json, os, runpy, sys
from pathlib import Path
from reprod_align.contract.guard import ARMED, Guard, hide_packages
import numpy
folder, ours, theirs = Path(sys.argv[1]), *os.pipe()
hide_packages()
files = sorted(folder.glob("*.py"))
told = {}
guard = Guard(folder, theirs, ())
guard.arm()
assert os.read(ours, 100).strip() == ARMED
os.set_blocking(ours, False)
for path in files:
    try:
        runpy.run_path(str(path))
    except BaseException as error:
        pass
    try:
        lines = os.read(ours, 65536).decode().splitlines()
    except BlockingIOError:
        lines = []
    told[path.stem] = [line.partition("\\\\t")[0] for line in lines]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What the guard told of each piece of code."""
    folder = tmp_path_factory.mktemp("port")
    for number, text in enumerate((*ASKED.values(), *HARMLESS)):
        (folder / f"piece_{number:02}.py").write_text(text)
    finished = run_python("-c", PROGRAM, folder, cwd=folder)
    assert finished.returncode == 0, finished.stderr
    found: dict[str, list[str]] = json.loads(finished.stdout.splitlines()[-1])
    assert not Path(folder / "made").exists() and "torch" in HIDDEN
    return found


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_for_is_told_by_name(name: str, told: dict[str, list[str]]) -> None:
    assert name.partition(" ")[0] in told[f"piece_{[*ASKED].index(name):02}"]


@pytest.mark.parametrize("number", range(len(HARMLESS)))
def test_what_libraries_do_is_left_alone(number: int, told: dict[str, list[str]]) -> None:
    assert told[f"piece_{len(ASKED) + number:02}"] == []


FINE = (
    "from paddle.nn import functional as F\nx = F.gelu\ny = [F.relu, F.tanh]",
    "import paddle\nF = paddle.nn.functional\nz = getattr(F, 'ge' + 'lu')",
    "import paddle\nS = paddle.static.InputSpec([1], 'int64')\nd = paddle.framework.get_default_dtype()",
    "import paddle\n\n\nclass A(paddle.nn.Layer):\n    nn = paddle.nn",
    "import paddlenlp.transformers as T\nm = T.BertModel",
    "import numpy as np\nx = np.linalg.norm",
    "import paddle\nx = paddle.nn.no_such_name",
    "from paddle.base.param_attr import ParamAttr\nx = ParamAttr(initializer=None)",
    "class A:\n    def forward(self, input):\n        return input + 1",
)
REFUSED = {
    "import logging\nlogging.os.environ": "reads-the-environment",
    "import logging as l\nl.os.getpid": "reads-the-environment",
    "import dataclasses\ndataclasses.sys.modules": "inspects-the-judge",
    "from logging import os\nos.system": "reads-files",
    "import paddle\nm = paddle.nn\nkept = [m]": "inspects-the-judge",
    "import paddle\n\n\ndef f(m):\n    return m.tanh\n\n\nf(paddle)": "inspects-the-judge",
    "import paddle\ngetattr(paddle, 'o' + 's')": "inspects-the-judge",
    "import paddle\nf = paddle.framework.io.load": "inspects-the-judge",
    "from paddle import static\nstatic.load_inference_model": "reads-files",
    "import paddle\nimport functools as f\nf.reduce(getattr, ['utils', 'os'], paddle)": "inspects-the-judge",
    "def f(m):\n    return m.subprocess": "starts-processes",
    "import paddle\nx, y = paddle.nn, 3": "inspects-the-judge",
    "def f(x):\n    type(x).numpy = None": "patches-framework",
    "def f(x):\n    setattr(x.__class__, 'numpy', None)": "patches-framework",
    "import paddle\nd = paddle.__dict__": "inspects-the-judge",
    "import operator\noperator.attrgetter('a.b')": "inspects-the-judge",
    "x = '{0.__globals__}'": "inspects-the-judge",
    "import paddle\np = paddle.base.libpaddle.x": "uses-ctypes",
}


def find(folder: Path, text: str) -> set[str]:
    (folder / "port.py").write_text(text)
    refused, lookups = screen_files([folder / "port.py"], ["paddlenlp.transformers"])
    return {one.code for one in refused} | {
        code for code, _ in look_up(lookups, ["paddlenlp.transformers"])
    }


@pytest.mark.parametrize(
    "text", [*FINE, *(one["port.py"] for one in HONEST.values() if len(one) == 1)]
)
def test_what_ports_name(text: str, tmp_path: Path) -> None:
    assert find(tmp_path, text) == set()


@pytest.mark.parametrize("text", REFUSED)
def test_where_names_must_not_lead(text: str, tmp_path: Path) -> None:
    assert REFUSED[text] in find(tmp_path, text)
