"""What counts as a repair: an edit of the port, and none that takes a planted fault out."""

from pathlib import Path

from benchmarks.fixing import is_of_port, stands_in_source
from tests.pairs.families import CASES

import pytest

TEXT = """
class Net:
    def forward(self, x):
        return x + 1


def build(change):
    if change:
        change(Net)


def step(x):
    return x + 3


def relu(self, x):
    return x


PLANTED = [build(lambda self, x: x - 1), build(act=lambda x: x + 2), build(act=step)]
LOSS = lambda out, y: out - y
"""


@pytest.mark.parametrize(
    ("line", "stage", "planted"),
    [
        ("return x + 1", "forward", False),
        ("if change", "forward", True),
        ("    return x\n", "forward", False),
        ("lambda self", "backward", False),
        ("act=lambda x", "forward", False),
        ("return x + 3", "forward", False),
        ("lambda out", "loss", False),
        ("lambda out", "forward", True),
    ],
)
def test_in_the_suite_only_what_a_layer_runs_is_the_port(
    line: str, stage: str, planted: bool, tmp_path: Path
) -> None:
    path = tmp_path / "tests" / "pairs" / "family.py"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT)
    number = TEXT[: TEXT.index(line) + len(line) - 1].count("\n") + 1
    assert is_of_port(str(path), number, stage) is not planted


def test_what_builds_the_zoo_is_no_port() -> None:
    assert not is_of_port("/somewhere/examples/zoo/pair.py", 1, "forward")


@pytest.mark.parametrize(
    ("name", "stands"),
    [
        ("mlp/mlp: activation left out", True),  # a forward
        ("encoder/TorchStock: no scale", True),  # a method
        ("norms/norms: unbiased variance", True),  # a class
        ("training/loss: softmax twice", True),
        ("mlp/mlp: LayerNorm epsilon 1e-12", False),  # a layer put into the port
        ("encoder/TorchStock: eps 1e-12", False),  # a setting of a layer that is made
        ("mlp/mlp: frozen head weight", False),
        ("mlp/mlp weights: square Linear not transposed", False),
        ("bert/query untransposed", False),
        ("encoder/cross: two heads", False),
        ("bert/eps 1e-5", False),  # an argument of a right class
        ("unseen/trained: first state is a buffer", False),  # likewise
        ("training/loss: sum for mean", False),  # a number that a right loss is made with
    ],
)
def test_of_the_suite_only_faults_in_a_ports_source_count(name: str, stands: bool) -> None:
    assert stands_in_source(CASES[name]) is stands
