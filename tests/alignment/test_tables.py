"""Tables that float32 has rounded in each framework's own way: the port is given the reference's."""

from reprod_align import align
from reprod_align.alignment.tables import lent_tables
from reprod_align.pair import paddle_side, torch_side

import numpy as np
import paddle
import pytest
import torch

ROWS = np.random.default_rng(3).standard_normal((7, 16))
ANGLES = np.arange(7)[:, None] * (1.0 / 10000 ** (np.arange(16) / 16))
SINES = np.sin(ANGLES).astype(np.float32)


class TorchPlaced(torch.nn.Module):
    def __init__(self, buffer: bool) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 16)
        if buffer:
            self.register_buffer("sines", torch.tensor(SINES), persistent=False)
        else:
            self.sines = torch.tensor(SINES)

    def forward(self, x):
        return torch.tanh(self.first(x) + self.sines)


class PaddlePlaced(paddle.nn.Layer):
    def __init__(self, units: int, base: float = 10000.0) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(16, 16)
        table = np.sin(np.arange(7)[:, None] * (1.0 / base ** (np.arange(16) / 16)))
        moved = table.astype(np.float32)
        for _ in range(units):
            moved[1::2] = np.nextafter(moved[1::2], np.float32(2))
        self.places = paddle.to_tensor(moved)

    def forward(self, x):
        return paddle.tanh(self.first(x) + self.places)


@pytest.mark.parametrize("buffer", [False, True])
def test_a_table_some_units_apart_is_no_difference(buffer) -> None:
    port = PaddlePlaced(units=3)
    before = port.places.numpy()
    report = align(TorchPlaced(buffer), port, (ROWS,))
    assert report.verdict == "faithful", str(report)
    said = [text for text in report.remarks if "1 table that float32 rounds" in text]
    assert len(said) == (not buffer), "a buffer of both is loaded as weights are"
    assert all("places" in text for text in said)
    assert np.array_equal(port.places.numpy(), before), "the model is given back as it came"


def test_a_table_of_the_same_numbers_is_not_mentioned() -> None:
    report = align(TorchPlaced(False), PaddlePlaced(units=0), (ROWS,))
    assert report.verdict == "faithful" and not any("table" in text for text in report.remarks)


@pytest.mark.parametrize("options", [{"units": 9}, {"units": 0, "base": 10001.0}])
def test_a_table_of_other_numbers_is_the_ports_own(options) -> None:
    report = align(TorchPlaced(False), PaddlePlaced(**options), (ROWS,))
    assert report.verdict != "faithful", str(report)
    assert not any("1 table that float32" in text for text in report.remarks)


def test_a_table_that_may_be_either_of_two_is_the_ports_own() -> None:
    class TorchTwo(TorchPlaced):
        def __init__(self) -> None:
            super().__init__(False)
            self.other = torch.tensor(np.nextafter(SINES, np.float32(2)))

        def forward(self, x):
            return super().forward(x) + 0.0 * self.other

    report = align(TorchTwo(), PaddlePlaced(units=3), (ROWS,))
    assert report.verdict != "faithful", str(report)


@pytest.mark.parametrize("hidden", [-np.inf, -1e9])
@pytest.mark.parametrize("moved", [False, True])
def test_a_mask_is_no_scale_for_what_a_table_holds_beside_it(hidden, moved) -> None:
    """Another number beside the hidden places, or other places: both are the port's own."""
    ours = np.full((7, 16), 0.3, np.float32)
    ours[:, 9:] = hidden
    theirs = np.roll(ours, 1, 1) if moved else np.where(ours == hidden, hidden, 0.5)
    torch_model, port = TorchPlaced(False), PaddlePlaced(units=0)
    torch_model.sines, port.places = torch.tensor(ours), paddle.to_tensor(theirs.astype("float32"))
    with lent_tables(torch_side(torch_model), paddle_side(port)) as lent:
        assert not lent
