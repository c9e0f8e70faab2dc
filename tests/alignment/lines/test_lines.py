"""One changed line of a port at a time: the first finding names that line, and the one it stands for."""

import importlib.util
from pathlib import Path
from types import ModuleType

import reprod_align
from reprod_align.alignment.locating.lines import LineFinder
from reprod_align.report import Finding
from tests.alignment.lines import torch_attention

import numpy as np
import pytest

PORT = Path(__file__).with_name("paddle_attention.py")
# what is changed in the port, to what, and a piece of PyTorch's line
FAULTS = {
    "axis": ("axis=-1", "axis=1", "dim=-1"),
    "operator": ("* self.scale", "/ self.scale", "* self.scale"),
    "constant set in __init__": ("** -0.5", "** -0.25", "** -0.5"),
    "axes": ("[0, 2, 1, 3]).reshape", "[0, 1, 2, 3]).reshape", "permute(0, 2, 1, 3).reshape"),
    "function": ("F.gelu(y)", "F.relu(y)", "F.gelu(y)"),
    "function dropped": ("y = F.gelu(y)", "y = y", "F.gelu(y)"),
    "call too many": ("y = self.out(y)", "y = self.out(y) * 2", ""),
    "residual dropped": ("self.norm(x + y)", "self.norm(y)", "x + y"),
    "residual subtracted": ("x + y", "x - y", "x + y"),
    "other value": ("probs @ v", "probs @ k", "probs @ v"),
    "exchanged values": ("matmul(q, k", "matmul(k, q", "q @ k"),
    "layer given another input": ("self.split(self.k(x))", "self.split(self.q(x))", ""),
    "epsilon of a layer": ("LayerNorm(d)", "LayerNorm(d, epsilon=1e-3)", "LayerNorm(d)"),
    "heads first": (".reshape([b, n, self.h, d // self.h]).transpose([0, 2, 1, 3])",
                    ".reshape([b, self.h, n, d // self.h])", "x.view"),
    "transposed result": ("transpose_y=True)", "transpose_y=True).transpose([0, 1, 3, 2])", ""),
    "gradient stopped": ("F.gelu(y)", "F.gelu(y.detach())", ""),
    "constant added at the end": ("self.norm(x + y)", "self.norm(x + y) + 1", ""),
}  # fmt: skip


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plant(original: Path, before: str, after: str, folder: Path) -> tuple[Path, int]:
    """Write a port with one piece changed, which stands in it once; return it and the piece's line."""
    text = original.read_text()
    assert text.count(before) == 1
    port = folder / "port.py"
    port.write_text(text.replace(before, after))
    return port, 1 + text[: text.index(before)].count("\n")


def first_of(ours: ModuleType, port: Path, model: str, *inputs: np.ndarray) -> Finding | None:
    """Return the first finding on a model that both files define."""
    import torch

    torch.manual_seed(0)
    report = reprod_align.align(getattr(ours, model)(), getattr(load(port), model)(), inputs)
    return report.findings[0] if report.findings else None


def masked_ids() -> tuple[np.ndarray, np.ndarray]:
    """Return token ids (2, 6), and 1 for each that is no padding."""
    kept = np.ones((2, 6), np.int64)
    kept[1, 4:] = 0
    return np.random.default_rng(0).integers(1, 30, (2, 6)), kept


def find_first(port: Path) -> Finding | None:
    x = np.random.default_rng(0).normal(size=(2, 5, 8))
    return first_of(torch_attention, port, "Attention", x)


def test_a_faithful_port_has_no_finding_and_no_line_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LineFinder, "find", None)
    assert find_first(PORT) is None


@pytest.mark.parametrize("name", FAULTS)
def test_the_changed_line_is_named(name: str, tmp_path: Path) -> None:
    before, after, torch_piece = FAULTS[name]
    port, changed = plant(PORT, before, after, tmp_path)
    finding = find_first(port)
    assert finding is not None and finding.paddle_line and finding.torch_line
    file, _, line = finding.paddle_line.rpartition(":")
    assert Path(file) == port and abs(int(line) - changed) <= 1
    assert Path(finding.torch_line.rpartition(":")[0]).name == "torch_attention.py"
    assert torch_piece in finding.torch_code


def test_a_port_that_is_edited_and_loaded_again_is_shown_as_it_stands(tmp_path: Path) -> None:
    port, _ = plant(PORT, "F.gelu(y)", "F.relu(y)", tmp_path)
    first = find_first(port)
    assert first is not None and "F.relu(y)" in first.paddle_code
    edited = port.read_text().replace("F.relu(y)", "F.gelu(y)").replace("axis=-1", "axis=1")
    port.write_text(f"# one line more\n{edited}")
    finding = find_first(port)
    assert finding is not None and "axis=1" in finding.paddle_code


def test_lines_that_never_ran_are_those_of_the_edited_port(tmp_path: Path) -> None:
    never = "        if x.shape[-1] > 100:\n            x = x * 2\n            x = x + 1\n"
    head = "    def forward(self, x"
    text = PORT.read_text()
    place = text.index("\n", text.index(head, text.index("class Attention"))) + 1
    x, port = (np.random.default_rng(0).normal(size=(2, 5, 8)),), tmp_path / "port.py"
    for before in ("", "# one line more\n"):
        port.write_text(before + text[:place] + never + text[place:])
        report = reprod_align.align(torch_attention.Attention(), load(port).Attention(), x)
        line = (before + text[:place]).count("\n") + 2
        said = [one.what for one in report.not_judged if one.what.startswith("Paddle: ")]
        assert [one for one in said if one.endswith(f"port.py:{line}-{line + 1}")], said


def test_a_report_shows_both_lines(tmp_path: Path) -> None:
    port, _ = plant(PORT, "F.softmax(scores, axis=-1)", "F.softmax(scores, axis=1)", tmp_path)
    finding = find_first(port)
    assert finding is not None
    assert (
        "`F.softmax(scores, axis=1)` in Paddle, `F.softmax(scores, dim=-1)` in PyTorch"
        in finding.message
    )
    text = reprod_align.report.Report(findings=[finding]).summary()
    line = (finding.paddle_line or "").rpartition(":")[2]
    assert f"--> {finding.paddle_line}\n{line} |  probs = F.softmax(scores, axis=1)\n" in text
    mark = next(row for row in text.splitlines() if "^" in row)
    assert mark.partition("|")[2] == "  " + " " * len("probs = ") + "^" * len(
        "F.softmax(scores, axis=1)"
    )
    assert f"= PyTorch: {finding.torch_line}:  probs = F.softmax(scores, dim=-1)" in text
