"""A module that holds others is made and not called: it is named, and the line that passes its input on."""

from pathlib import Path

import reprod_align
from reprod_align.model.source import SourceLine
from reprod_align.model.source.parsing import find_output
from tests.alignment.lines.test_lines import load, plant

import numpy as np
import pytest
import torch

PORT = """\
from paddle import nn


class Layer(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


class Stack(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList(Layer() for _ in range(2))

    def forward(self, x, scale):
        for layer in self.layers:
            x = layer(x) * scale
        return x


class Encoder(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.stack = nn.LayerNorm(8), Stack()

    def forward(self, x):
        given = self.norm(x)
        made = self.stack(given, 1.0)
        return made


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder, self.head = Encoder(), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.encoder(x))
"""


class Layer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.head = Encoder(), torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x))


def judge(port: Path) -> reprod_align.Report:
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((2, 5, 8))
    return reprod_align.align(Model(), load(port).Model(), (x,))


def test_a_module_that_is_never_called_is_named(tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text(PORT)
    assert judge(path).passed
    port, changed = plant(path, "self.stack(given, 1.0)", "given", tmp_path)
    finding = judge(port).findings[0]
    assert finding.paddle_name == "encoder" and finding.paddle_line == f"{port}:{changed}"
    assert "Paddle never calls `self.stack`" in finding.message


CHOSEN = PORT.replace(
    """        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))
""",
    """        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.activation = KINDS["gelu"]

    def forward(self, x):
        y = self.up(x)
        y = self.activation(y)
        return x + self.down(y)
""",
)


@pytest.mark.edits(400)
@pytest.mark.parametrize("kind", ["nn.functional.gelu", "nn.GELU()"])
def test_what_a_table_gives_and_nothing_calls_is_the_edit(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text(CHOSEN.replace("\n\n", f'\nKINDS = {{"gelu": {kind}}}\n\n', 1))
    assert judge(path).passed
    port, changed = plant(path, "y = self.activation(y)", "y = y", tmp_path)
    finding = judge(port).findings[0]
    assert finding.edit is not None
    assert (finding.edit.line, finding.edit.after) == (changed, "self.activation(y)")


READER = """\
from paddle import nn


class Reader(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.mix = nn.Embedding(20, 8), nn.Linear(8, 8)

    def forward(self, words):
        return self.mix(self.words(words))


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = Reader(), Reader()

    def forward(self, words, said):
        encoded = self.encoder(words)
        decoded = self.decoder(said)
        return decoded, encoded
"""


class _Reader(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.mix = torch.nn.Embedding(20, 8), torch.nn.Linear(8, 8)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        mixed: torch.Tensor = self.mix(self.words(words))
        return mixed


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = _Reader(), _Reader()

    def forward(self, words: torch.Tensor, said: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        encoded = self.encoder(words)
        return self.decoder(said), encoded


def test_an_output_that_a_module_never_made_is_named_where_another_value_is_given(
    tmp_path: Path,
) -> None:
    port = tmp_path / "port.py"
    port.write_text(READER.replace("self.decoder(said)", "said"))
    words = np.random.default_rng(0).integers(0, 20, (2, 2, 5))
    finding = reprod_align.align(_Model(), load(port).Model(), tuple(words)).findings[0]
    line = 1 + READER[: READER.index("self.decoder(said)")].count("\n")
    assert (finding.paddle_name, finding.kind) == ("decoder", "output-missing")
    assert finding.paddle_line == f"{port}:{line}"


def test_an_output_of_a_name_is_looked_for_under_it(tmp_path: Path) -> None:
    text = READER.replace(
        "return decoded, encoded", "return dict(encoded=encoded, decoded=decoded)"
    )
    port = tmp_path / "port.py"
    port.write_text(text)
    classes = [SourceLine(str(port), 1 + text[: text.index("class Model")].count("\n"))]
    lines = [
        text[: text.index(f"{name} = self")].count("\n") + 1 for name in ("decoded", "encoded")
    ]
    found = [find_output(classes, name) for name in ("decoded", "encoded")]
    assert [one and one.line for one in found] == lines
