"""A port is spelled as its source: imported names, literals, and the formatter of its project."""

import shutil
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.porting.loop import substitute
from reprod_align.porting.spelling import spell_as_source

import pytest

NOWHERE = Path("/nowhere/source.py")


def spell(port: str, source: str, path: Path = NOWHERE) -> list[str]:
    return spell_as_source(port, source, path).splitlines()


SOURCE = """import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""


def test_short_names_of_the_source_are_kept():
    port = """import paddle

class Model(paddle.nn.Layer):
    def forward(self, x: paddle.Tensor):
        return paddle.nn.functional.relu(paddle.abs(x))
"""
    assert spell(port, SOURCE) == [
        "import paddle",
        "import paddle.nn.functional as F",
        "from paddle import Tensor, nn",
        "",
        "class Model(nn.Layer):",
        "    def forward(self, x: Tensor):",
        "        return F.relu(paddle.abs(x))",
    ]


def test_a_name_that_is_not_read_is_not_imported():
    assert spell("import paddle\nx = paddle.nn.Linear(1, 1)\n", SOURCE) == [
        "import paddle",
        "from paddle import nn",
        "x = nn.Linear(1, 1)",
    ]


def test_an_import_of_a_function_counts_too():
    source = "def build():\n    from torch import nn as layers\n    return layers.Linear(1, 1)\n"
    port = "import paddle\ndef build():\n    return paddle.nn.Linear(1, 1)\n"
    assert spell(port, source)[:2] == ["import paddle", "import paddle.nn as layers"]


def test_the_shortest_of_several_names_is_kept():
    source = "from torch import nn\nimport torch.nn as nn_2\n"
    port = "import paddle\nx = paddle.nn.Linear(1, 1)\n"
    assert spell(port, source) == ["import paddle", "from paddle import nn", "x = nn.Linear(1, 1)"]
    assert spell(f"{port}nn = 1\n", source)[1:3] == [
        "import paddle.nn as nn_2",
        "x = nn_2.Linear(1, 1)",
    ]


def test_what_the_port_imports_already_is_not_imported_again():
    port = "import paddle\nfrom paddle import nn\nx = paddle.nn.Linear(1, 1)\n"
    assert spell(port, SOURCE) == ["import paddle", "from paddle import nn", "x = nn.Linear(1, 1)"]


@pytest.mark.parametrize(
    "line",
    ["nn = 3", "def nn(): pass", "class nn: pass", "import numpy as nn", "for nn in (): pass"],
)
def test_a_name_that_the_port_uses_otherwise_is_not_taken(line):
    port = f"import paddle\n{line}\nx = paddle.nn.Linear(1, 1)\n"
    assert spell(port, SOURCE) == port.splitlines()


@pytest.mark.parametrize(
    "before, after",
    [
        ("def f(F): return paddle.nn.functional.relu(F)",) * 2,
        ("f = lambda F: paddle.nn.functional.relu(F)",) * 2,
        ("def f(x):\n    F = 2\n    return paddle.nn.functional.relu(x)",) * 2,
        ("def f(x): return paddle.nn.functional.relu(x)", "def f(x): return F.relu(x)"),
    ],
)
def test_a_variable_of_a_function_hides_the_name_there_alone(before, after):
    source = "import torch.nn.functional as F\n"
    lines = spell(f"import paddle\ng = paddle.nn.functional.gelu\n{before}\n", source)
    assert lines[:3] == ["import paddle", "import paddle.nn.functional as F", "g = F.gelu"]
    assert "\n".join(lines[3:]) == after


def test_a_name_that_paddle_lacks_stays_in_full():
    source = "from torch.nn import Conv2d\n"
    port = "import paddle\nx = paddle.nn.Conv2D(1, 1, 1)\n"
    assert spell(port, source) == port.splitlines()


@pytest.mark.parametrize(
    "source, before, after",
    [
        ('x = "same"', "y = 'same'", 'y = "same"'),
        ('x = "same"', "y = 'other'", 'y = "other"'),
        ("x = 'same'", 'y = "other"', "y = 'other'"),
        ("x = 1", "y = 'other', \"more\"", "y = 'other', \"more\""),
        ('x = "same"', "y = 'a \"quoted\" word'", "y = 'a \"quoted\" word'"),
        ('x = "same"', r"y = 'a\nb'", r"y = 'a\nb'"),
        ('x = "same"', "y = f'{x} same'", "y = f'{x} same'"),
        ('x = "same"', "y = f\"{x['same']}\"", "y = f\"{x['same']}\""),
        ("x = 1e-6", "y = 1e-06", "y = 1e-6"),
        ("x = 1", "y = 1.0", "y = 1.0"),
        ("x = 1_000", "y = [1000, 'ä', 1000]", "y = [1_000, 'ä', 1_000]"),
        ("x = 'a'; x = \"a\"", "y = 'a'", "y = 'a'"),
        ('x = b"a"', "y = 'a'", "y = 'a'"),
    ],
)
def test_literals_are_written_as_the_source_writes_them(source, before, after):
    assert spell(before, source) == [after]


def test_a_port_that_is_no_python_stays_as_it_is():
    port = "import paddle\nx = = 'a'\n"
    assert spell(port, SOURCE) == port.splitlines()


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
@pytest.mark.parametrize("name", ["pyproject.toml", "ruff.toml"])
def test_the_project_s_formatter_formats(tmp_path, name):
    table = "[tool.ruff]\n" if name == "pyproject.toml" else ""
    (tmp_path / name).write_text(f"{table}line-length = 20\n", encoding="utf-8")
    (tmp_path / "src").mkdir()
    lines = spell("y = call(first, second)\n", "", tmp_path / "src" / "model.py")
    assert lines == ["y = call(", "    first, second", ")"]


@pytest.mark.parametrize("content", ["[tool.mypy]\n", "no TOML", "tool = 1\n", "[tool.black]\n"])
def test_without_a_formatter_the_text_stays(tmp_path, monkeypatch, content):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
    assert spell("y  =  1\n", "", tmp_path / "model.py") == ["y  =  1"]


def test_a_formatter_that_fails_changes_nothing(tmp_path, monkeypatch):
    tool = tmp_path / "black"
    tool.write_text("#!/bin/sh\necho broken\nexit 1\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    (tmp_path / "pyproject.toml").write_text("[tool.black]\n", encoding="utf-8")
    assert spell("y  =  1\n", "", tmp_path / "model.py") == ["y  =  1"]


def test_remedies_find_what_has_a_short_name():
    code = Code("import paddle\nimport paddle.nn.functional as F\n\ny = F.embedding(x, w)\n")
    helper = 'def embed(x, weight):\n    """Look up."""\n'
    text = code.splice(substitute(code, ("paddle.nn.functional.embedding",), helper))
    assert text.splitlines()[-1] == "y = embed(x, w)"


def test_a_helper_takes_no_name_of_the_source():
    code = Code("import paddle\n\n\nclass embed:\n    x = paddle.nn.functional.embedding(1, 2)\n")
    helper = 'def embed(x, weight):\n    """Look up."""\n'
    text = code.splice(substitute(code, ("paddle.nn.functional.embedding",), helper))
    assert "def embed_(x, weight):" in text and "    x = embed_(1, 2)" in text
    again = Code(text + "y = paddle.nn.functional.embedding(1, 2)\n")
    text = again.splice(substitute(again, ("paddle.nn.functional.embedding",), helper))
    assert text.count("def embed_") == 1 and text.splitlines()[-1] == "y = embed_(1, 2)"
