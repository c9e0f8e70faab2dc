"""One changed setting of a port at a time: the line named is that of the argument, not the call's first."""

from pathlib import Path

from reprod_align.alignment.lines.construction import find_argument
from reprod_align.pair import paddle_side
from reprod_align.report import Finding
from tests.alignment.lines import torch_blocks
from tests.alignment.lines.test_lines import first_of, load, plant

import numpy as np
import pytest

PORT = Path(__file__).with_name("paddle_blocks.py")
# what is changed in the port, and to what
FAULTS = {
    "flag of a layer": ("normalize_before=True", "normalize_before=False"),
    "heads of a layer": ("nhead=2", "nhead=4"),
    "rate of a layer": ("dropout=0.1,\n            act", "dropout=0.4,\n            act"),
    "rate inside a layer's part": ("attn_dropout=0.2", "attn_dropout=0.5"),
    "function of a layer": ('activation="gelu"', 'activation="relu"'),
    "rate of an own class": ("dropout=0.3", "dropout=0.2"),
    "function of an own class": ('act="gelu",\n            mix', 'act="relu",\n            mix'),
    "default of an own class": ("eps: float = 1e-6", "eps: float = 1e-3"),
    "rate in an own class": ("nn.Dropout(dropout)", "nn.Dropout(0.5)"),
    "layer by its name": ('mix="gate"', 'mix="conv"'),
    "condition that chooses a layer": ('if mix == "gate"', 'if mix != "gate"'),
    "part of a fused parameter": ("self.k = nn.Linear(d, d)", "self.k = nn.Linear(d, d, bias_attr=False)"),
    "outputs exchanged": ("return y @ y.t(), y.t() @ y", "return y.t() @ y, y @ y.t()"),
}  # fmt: skip


def find_first(port: Path) -> Finding | None:
    return first_of(torch_blocks, port, "Model", np.random.default_rng(0).normal(size=(3, 5, 8)))


def test_the_port_is_faithful() -> None:
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_argument_s_line_is_named(name: str, tmp_path: Path) -> None:
    before, after = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line
    file, _, line = finding.paddle_line.rpartition(":")
    assert (Path(file), int(line)) == (port, changed), f"{finding} {finding.paddle_code}"


def test_a_setting_is_followed_into_the_framework_s_constructors() -> None:
    side = paddle_side(load(PORT).Model())
    info = side.describe()

    def code_of(path: str, names: list[str]) -> str:
        line = find_argument(side, info, path, names)
        return "" if line is None else line.text

    assert code_of("layers.layers.0.dropout2", ["p"]) == "dropout=0.1,"
    assert code_of("layers.layers.1.self_attn", ["num_heads"]) == "nhead=2,"
    assert code_of("layers.layers.0.norm1", ["epsilon"]) == "layer = nn.TransformerEncoderLayer("
    assert code_of("head.norm", ["epsilon"]) == "eps: float = 1e-6,"
    assert code_of("head", ["no_such_setting"]) == ""
