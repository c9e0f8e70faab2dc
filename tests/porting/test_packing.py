"""Packed sequences: the functions that make and open them, and the recurrent layers that take them."""

from reprod_align.porting.calls import adapters
from tests.porting.conftest import PortSource

import numpy as np
import pytest

SOURCE = """
import torch
import torch.nn as nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


class Net(nn.Module):
    def __init__(self, kind, layers, both, first, ordered=False):
        super().__init__()
        self.first, self.ordered = first, ordered
        self.rnn = getattr(nn, kind)(3, 4, num_layers=layers, bidirectional=both, batch_first=first)
        self.last = nn.GRU(8 if both else 4, 2)

    def forward(self, x, mask):
        x = torch.tanh(x) if self.first else x.transpose(0, 1)
        packed = pack_padded_sequence(
            x, mask.sum(1).cpu(), batch_first=self.first, enforce_sorted=self.ordered
        )
        packed = PackedSequence(packed.data * 2, *packed[1:])
        out, hidden = self.rnn(packed)
        assert isinstance(out, PackedSequence)
        weights = torch.softmax(out.data.sum(-1), 0)
        padded, lengths = pad_packed_sequence(
            out, batch_first=self.first, padding_value=-1.0, total_length=6
        )
        some, _ = pad_packed_sequence(self.last(out)[0])
        return padded, lengths, hidden, weights, some, self.last(padded)[0]


class Listed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(3, 4)

    def forward(self, x, mask):
        parts = [one[: int(n)] for one, n in zip(x, mask.sum(1))]
        packed = nn.utils.rnn.pack_sequence(parts, enforce_sorted=False)
        hidden = torch.full((1, len(parts), 4), 0.1, dtype=x.dtype)
        return nn.utils.rnn.pad_packed_sequence(self.rnn(packed, hidden)[0])[0]
"""
X = np.random.default_rng(0).standard_normal((3, 5, 3))
RAGGED = np.array([[1, 1, 0, 0, 0], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
ORDERED = RAGGED[[1, 2, 0]]


@pytest.mark.parametrize(
    ("call", "mask"),
    [
        ("Net('LSTM', 2, True, True)", RAGGED),
        ("Net('GRU', 1, False, False, True)", ORDERED),
        ("Listed()", RAGGED),
    ],
)
def test_packed_sequences_are_ported(port_source: PortSource, call: str, mask: np.ndarray) -> None:
    result, _ = port_source(SOURCE, (X, mask), call)
    assert result.passed and not result.course.steps, result.left
    assert not [one for one in result.draft.unproven if "rnn" in one or "another" in one]


def test_an_adapter_brings_those_that_it_is_written_with() -> None:
    text = adapters.ADAPTERS["torch.nn.utils.rnn.pack_sequence"]
    found = [one.rpartition(".")[2] for one in adapters.list_needed(text)]
    assert found == ["pack_padded_sequence", "pad_sequence"]
