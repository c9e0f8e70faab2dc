"""The source of a port is read, and never run."""

from pathlib import Path

from reprod_align.contract.screen import screen_files
from tests.contract.made import PORT

import pytest

FINE = (
    "from __future__ import annotations\nimport math\nfrom typing import Any",
    "import numpy as np\nX = np.linspace(0, 1)",
    "import paddle.nn.functional as F\nACT = {'gelu': F.gelu}\nf = getattr(F, 'relu')",
    "import os\nP = os.path.join('a', 'b')",
    "class C:\n    def __init__(self):\n        self.weights = [1, 2]\n        self.weights[0] = 3",
    "try:\n    x = 1\nexcept (KeyError, ValueError):\n    x = 2",
    "try:\n    x = 1\nexcept Exception as error:\n    raise ValueError from error",
    "from paddlenlp.transformers import BertModel",
)
REFUSED = {
    "import numpy as np\ndel np.abs": "patches-comparison",
    "import paddle\nsetattr(paddle, 'add', 1)": "patches-framework",
    "import paddle as p\nfrom paddle import nn\n(nn.Linear, x) = 1, 2": "patches-framework",
    "import os\ngetattr(os, 'sys' + 'tem')('true')": "inspects-the-judge",
    "import sys\nsys.modules": "inspects-the-judge",
    "from os import environ": "reads-the-environment",
    "from paddle import load": "reads-files",
    "import paddle\npaddle.utils.cpp_extension": "runs-text",
    "try:\n    x = 1\nfinally:\n    for _ in ():\n        break": "swallows-exceptions",
    "try:\n    x = 1\nexcept:\n    pass": "swallows-exceptions",
    "x = ().__class__.__bases__[0].__subclasses__()": "inspects-the-judge",
    "x = 'a' * 2\ny = " + repr("A" * 30_000): "holds-answers",
    "def f(:": "not-python",
    "import onnxruntime": "imports-unlisted",
    "from paddlenlp_other import x": "imports-unlisted",
}


def screen(folder: Path, text: str) -> set[str]:
    (folder / "port.py").write_text(text)
    found, _ = screen_files([folder / "port.py"], ["paddlenlp.transformers"])
    return {one.code for one in found}


@pytest.mark.parametrize("text", [*FINE, PORT])
def test_what_ports_do_is_fine(text: str, tmp_path: Path) -> None:
    assert screen(tmp_path, text) == set()


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str, tmp_path: Path) -> None:
    assert REFUSED[text] in screen(tmp_path, text)


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(b"")
    found, _ = screen_files([tmp_path / "none.py", tmp_path / "weights.bin"], [])
    assert [one.code for one in found] == ["not-a-plain-file"] * 2
