"""The other end of a remote side answers questions, in a thread here; and how a side shows its work."""

from multiprocessing import Pipe
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

from reprod_align import pair
from reprod_align.errors import ReprodError
from reprod_align.pair import announce_work, child, paddle_side, torch_side
from reprod_align.pair.wire import Wire
from reprod_align.randomness import KeyedDraws

import numpy as np
import paddle
import pytest
import torch

FILE = """
import numpy as np
import torch

def torch_model():
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2)

def torch_loss(output):
    return output.sum()

inputs = (np.ones((2, 3)),)
steps = 2
optimiser = None
"""


@pytest.fixture
def ask(tmp_path: Path):
    """Start the other end on a file; return a function that asks it."""
    (tmp_path / "pair.py").write_text(FILE)
    ours, theirs = Pipe()
    thread = Thread(target=child.main, args=(tmp_path / "pair.py", "torch", Wire(theirs)))
    thread.start()
    wire = Wire(ours)

    def ask(*question):
        if question:
            wire.send(question)
        return wire.receive()

    yield ask
    wire.close()
    thread.join(60)
    assert not thread.is_alive()


def test_the_other_end_answers(ask):
    hello = ask()
    assert (
        hello.name == "PyTorch" and hello.functions == {"loss"} and hello.settings == {"steps": 2}
    )
    assert ask("remarks", (), {}) == []
    assert ask("start_working", ("float64", False, False), {}) is None
    assert ask("describe", (), {}).tensors.keys() == {"weight", "bias"}
    ask("load", ({"weight": np.ones((2, 3)), "bias": np.zeros(2)},), {})
    trace = ask("run", (hello.inputs, True, KeyedDraws(0, {})), {"keep": "ends"})
    assert trace.loss == 12.0 and trace.gradients["weight"].tolist() == [[2.0] * 3] * 2
    assert ask("stop_working", (), {}) is None


def test_an_error_is_an_answer(ask):
    ask()
    error = ask("rates", (1,), {})
    assert isinstance(error, ReprodError) and "has no optimizer" in str(error)


def test_a_side_shows_its_work(monkeypatch):
    shown = []
    monkeypatch.setattr(pair, "tell", shown.append)
    side = announce_work(
        SimpleNamespace(
            name="Paddle", describe=lambda: 1, train=lambda *given: given, rates=lambda steps: []
        )
    )
    assert (side.describe(), side.train("inputs", 2, []), side.rates(3)) == (
        1,
        ("inputs", 2, []),
        [],
    )
    assert shown == [
        "Paddle: weights and settings", "Paddle: optimizer, 2 steps", "Paddle: schedule, 3 steps"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "wanted"), [(torch_side, "torch.nn.Module"), (paddle_side, "Layer")]
)
def test_a_side_takes_its_own_models_alone(make, wanted):
    with pytest.raises(ReprodError, match=f"is of type int, not a .*{wanted}"):
        make(3)
    with pytest.raises(ReprodError, match="device meta"):
        torch_side(torch.nn.Linear(2, 2, device="meta"))
    assert paddle_side(paddle.nn.Linear(2, 2)).name == "Paddle"
