"""A small contract with its reference and an honest port, on disk; sides of this process for fast tests."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from reprod_align.backends.recipes import Recipe
from reprod_align.base import Framework
from reprod_align.contract.child import ProofServed
from reprod_align.contract.guard import DottedName, Fingerprint
from reprod_align.contract.proof import ContractProof, Refusal
from reprod_align.contract.prove import prove
from reprod_align.contract.terms import Terms, read_terms
from reprod_align.pair.file import PairFile, open_file
from reprod_align.records.gate import digest

REFERENCE = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.dense = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20)

    def forward(self, input_ids):
        words = self.embed(input_ids).cumsum(1)  # (B, L, 8)
        return self.head(self.norm(torch.tanh(self.dense(words))))  # (B, L, 20)


def torch_model():
    torch.manual_seed(0)
    return Model()
"""
PORT = """
import paddle
from paddle import nn


class Model(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.dense = nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)
        self.head = nn.Linear(8, 20)

    def forward(self, input_ids):
        words = self.embed(input_ids).cumsum(1)  # (B, L, 8)
        return self.head(self.norm(paddle.tanh(self.dense(words))))  # (B, L, 20)


def paddle_model():
    return Model()
"""
FORWARD = PORT[PORT.index("        words =") : PORT.index("\n\ndef paddle_model")]
TERMS = """
name = "small"
round_trip = true
batches = 2
seconds = {seconds}
[reference]
file = "reference.py"
[reference.digests]
"reference.py" = "{digest}"
[port]
folder = "port"
file = "port.py"
{port}
[inputs.input_ids]
shape = [2, "4-7"]
kind = "int64"
high = 20
[tokens]
count = 3
[training]
steps = 3
loss = "cross_entropy"
labels = 20
"""


def write_contract(
    folder: Path,
    files: Mapping[str, str],
    reference: str = REFERENCE,
    seconds: float = 300,
    **replaced: str,
) -> Path:
    """Write a contract into a folder, with a port of these files; return its path."""
    (folder / "port").mkdir()
    (folder / "reference.py").write_text(reference)
    for name, text in files.items():
        (folder / "port" / name).write_text(text)
    further = [name for name in files if name != "port.py"]
    port = f"files = {further!r}"
    text = TERMS.format(digest=digest(folder / "reference.py"), port=port, seconds=seconds)
    for old, new in replaced.items():
        assert old in text, old
        text = text.replace(old, new)
    path = folder / "contract.toml"
    path.write_text(text)
    return path


class SideHere:
    """A side of a proof in this process: what the port does is judged, and not what it asks for."""

    def __init__(
        self,
        terms: Terms,
        recipe: Recipe | None,
        lookups: Sequence[DottedName],
        framework: Framework,
    ) -> None:
        """Load the side's file."""
        self._stack = ExitStack()
        path = terms.port if framework == "paddle" else terms.reference
        before = take_fingerprint() if framework == "paddle" else None
        file = self._stack.enter_context(open_file(path, PairFile))
        self._served = ProofServed(file, framework, recipe, before)
        self.armed, self.folder = True, terms.path.parent

    def __enter__(self) -> Self:
        """Return this side."""
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the file."""
        self._stack.close()

    @property
    def hello(self) -> Any:
        """What a process says first."""
        return self._served.hello()

    def __getattr__(self, name: str) -> Any:
        """Return what the side or its service has under this name."""
        side = self._served._side
        if name == "working":
            return side.working
        return lambda *arguments, **options: self._served.answer(name, arguments, options)

    def list_refusals(self) -> list[Refusal]:
        """No guard listens here."""
        return []

    def list_changes(self) -> list[Refusal]:
        """Return the functions that are others now."""
        found = self._served.answer("list_changes", (), {})
        if found:
            take_fingerprint().put_back()
        return [Refusal(code, name) for code, name in found]

    def save(self, name: str) -> Path:
        """Write the checkpoint."""
        self._served.answer("save", (str(self.folder / name),), {})
        return self.folder / name

    def restore(self, path: Path) -> None:
        """Load the checkpoint."""
        self._served.answer("restore", (str(path),), {})


def prove_here(path: Path, seed: int | None = None) -> ContractProof:
    """Prove a contract in this process."""
    return prove(read_terms(path), seed, start=SideHere)  # type: ignore[arg-type]


@cache
def take_fingerprint() -> Fingerprint:
    """Return what stood in the frameworks before any port of the tests was loaded."""
    import paddle  # noqa: F401
    import paddlenlp  # noqa: F401  # replaces Paddle's Transformer, whichever test imports it first
    import torch  # noqa: F401

    import_module("reprod_align.backends.torch.side")
    import_module("reprod_align.backends.paddle.side")
    return Fingerprint()
