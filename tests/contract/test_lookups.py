"""What names of a port lead to, where Paddle is imported; and what a port may ask of Paddle."""

from pathlib import Path

from reprod_align.contract.guard import look_up
from reprod_align.contract.screen import screen_files
from tests.contract.cheats import HONEST

import pytest

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
