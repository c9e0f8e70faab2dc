"""Recurrent taggers and classifiers: whole networks, cells in a loop, packed and padded sequences."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.pairs.case import Case, case
from tests.pairs.encoder import (
    LOSSES,
    WB,
    Change,
    Rules,
    Twins,
    below,
    frozen,
    override,
    repeat,
    seed,
    setting,
    swap,
    twins,
    weight,
)

import numpy as np
import paddle
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

V, E, H, CLASSES = 19, 5, 5, 3
WEIGHTS, FORWARD, BACKWARD = ("weights",), ("audit", "forward"), ("backward",)
TORCH_KINDS = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}
PADDLE_KINDS = {"LSTM": paddle.nn.LSTM, "GRU": paddle.nn.GRU, "RNN": paddle.nn.SimpleRNN}


class TorchTagger(torch.nn.Module):
    """Tags token ids (B, L) of which the first `lengths` (B,) count; returns the last states too."""

    def __init__(self, kind: str, layers: int, both_ways: bool, dropout: float, **options: Any):
        super().__init__()
        self.embed = torch.nn.Embedding(V, E, padding_idx=0)
        given = {"batch_first": True, "bidirectional": both_ways, "dropout": dropout}
        self.rnn = TORCH_KINDS[kind](E, H, layers, **given | options)
        self.head = torch.nn.Linear(H * (1 + both_ways), CLASSES)

    def forward(self, ids, lengths):
        x = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(x)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=ids.shape[1])
        return self.head(states), last


class PaddleEmbedding(paddle.nn.Embedding):
    """Returns the pad row as it is (Paddle's own returns zeros), and gives it no gradient."""

    def forward(self, ids):
        rows = paddle.nn.functional.embedding(ids, self.weight)
        return paddle.where((ids == 0).unsqueeze(-1), rows.detach(), rows)


class PaddleTagger(paddle.nn.Layer):
    """The port of TorchTagger."""

    def __init__(self, kind: str, layers: int, both_ways: bool, dropout: float, **options: Any):
        super().__init__()
        self.embed = PaddleEmbedding(V, E)
        direction = "bidirect" if both_ways else "forward"
        given = {"direction": direction, "dropout": dropout}
        self.rnn = PADDLE_KINDS[kind](E, H, layers, **given | options)
        self.head = paddle.nn.Linear(H * (1 + both_ways), CLASSES)

    def forward(self, ids, lengths):
        states, last = self.rnn(self.embed(ids), sequence_length=lengths)
        return self.head(states), last


def batch() -> dict[str, np.ndarray]:
    """Return three sentences of six tokens, two of them padded with token 0."""
    ids = np.random.default_rng(0).integers(1, V, (3, 6))
    lengths = np.array([4, 6, 3])
    return {"ids": ids * (np.arange(6) < lengths[:, None]), "lengths": lengths}


def tagger(
    kind: str = "LSTM",
    layers: int = 2,
    both_ways: bool = True,
    dropout: float = 0.0,
    port: dict[str, Any] | None = None,
    sides: tuple[Any, Any] = (TorchTagger, PaddleTagger),
    torch_options: dict[str, Any] | None = None,
    **given: Any,
) -> Twins:
    """Build a tagger pair; `port` says in what the port's arguments differ."""
    seed()
    arguments = {"kind": kind, "layers": layers, "both_ways": both_ways, "dropout": dropout}
    torch_model = sides[0](**arguments, **torch_options or {})
    paddle_model = sides[1](**arguments | (port or {}))
    losses = {"torch_loss": _all_squares, "paddle_loss": _all_squares}
    return twins(torch_model, paddle_model, batch(), **losses | given)


def _all_squares(output: Any) -> Any:
    """Return the mean square of the scores and of the last hidden states."""
    scores, last = output
    hidden = last[0] if isinstance(last, tuple | list) else last
    return (scores**2).mean() + (hidden**2).mean()


class TorchPadded(TorchTagger):
    """Runs over the padding too, time first."""

    def forward(self, ids, lengths):
        states, last = self.rnn(self.embed(ids).transpose(0, 1))
        return self.head(states.transpose(0, 1)), last


class PaddlePadded(PaddleTagger):
    """Runs over the padding too, batch first."""

    def forward(self, ids, lengths):
        states, last = self.rnn(self.embed(ids))
        return self.head(states), last


class PaddleTimeFirst(PaddleTagger):
    def forward(self, ids, lengths):
        x = self.embed(ids).transpose([1, 0, 2])
        states, last = self.rnn(x, sequence_length=lengths)
        return self.head(states.transpose([1, 0, 2])), last


class PaddleCells(paddle.nn.Layer):
    """LSTM cells in a loop, one way, with the padding kept out by hand."""

    def __init__(self, kind: str, layers: int, both_ways: bool, dropout: float, **options: Any):
        super().__init__()
        self.embed = PaddleEmbedding(V, E)
        cell = {"LSTM": paddle.nn.LSTMCell, "GRU": paddle.nn.GRUCell}[kind]
        sizes = [E, *[H] * (layers - 1)]
        self.cells = paddle.nn.LayerList([cell(size, H, **options) for size in sizes])
        self.head = paddle.nn.Linear(H, CLASSES)
        self.parts = 2 if kind == "LSTM" else 1

    def begin(self, x):
        return [[paddle.zeros([x.shape[0], H], x.dtype)] * self.parts for _ in self.cells]

    def kept(self, new, old, step, lengths):
        going = (lengths > step).unsqueeze(-1).astype(new[0].dtype)
        return [going * a + (1 - going) * b for a, b in zip(new, old, strict=True)]

    def call(self, number, x, state):
        _, new = self.cells[number](x, tuple(state) if self.parts == 2 else state[0])
        return list(new) if self.parts == 2 else [new]

    def forward(self, ids, lengths):
        x, tops = self.embed(ids), []
        state = self.begin(x)
        for step in range(ids.shape[1]):
            below = x[:, step]
            for number in range(len(self.cells)):
                new = self.call(number, below, state[number])
                state[number] = self.kept(new, state[number], step, lengths)
                below = state[number][0]
            tops.append(below * (lengths > step).unsqueeze(-1).astype(below.dtype))
        last = tuple(paddle.stack([s[part] for s in state]) for part in range(self.parts))
        return self.head(paddle.stack(tops, axis=1)), last if self.parts == 2 else last[0]


class TorchCells(torch.nn.Module):
    """The same in PyTorch."""

    def __init__(self, kind: str, layers: int, both_ways: bool, dropout: float):
        super().__init__()
        self.embed = torch.nn.Embedding(V, E, padding_idx=0)
        cell = {"LSTM": torch.nn.LSTMCell, "GRU": torch.nn.GRUCell}[kind]
        self.cells = torch.nn.ModuleList([cell(E if n == 0 else H, H) for n in range(layers)])
        self.head = torch.nn.Linear(H, CLASSES)
        self.parts = 2 if kind == "LSTM" else 1

    def kept(self, new, old, step, lengths):
        going = (lengths > step).unsqueeze(-1).to(new[0].dtype)
        return [going * a + (1 - going) * b for a, b in zip(new, old, strict=True)]

    def call(self, number, x, state):
        new = self.cells[number](x, tuple(state) if self.parts == 2 else state[0])
        return list(new) if self.parts == 2 else [new]

    def forward(self, ids, lengths):
        x, tops = self.embed(ids), []
        state = [[x.new_zeros(x.shape[0], H)] * self.parts for _ in self.cells]
        for step in range(ids.shape[1]):
            below = x[:, step]
            for number in range(len(self.cells)):
                new = self.call(number, below, state[number])
                state[number] = self.kept(new, state[number], step, lengths)
                below = state[number][0]
            tops.append(below * (lengths > step).unsqueeze(-1).to(below.dtype))
        last = tuple(torch.stack([s[part] for s in state]) for part in range(self.parts))
        return self.head(torch.stack(tops, dim=1)), last if self.parts == 2 else last[0]


class PaddleWrapped(PaddleTagger):
    """Single layers of one or two cells, wrapped by the framework's own loop, over the padding too."""

    def __init__(self, kind: str, layers: int, both_ways: bool, dropout: float):
        super().__init__(kind, layers, both_ways, dropout)
        cell = {"LSTM": paddle.nn.LSTMCell, "GRU": paddle.nn.GRUCell}[kind]
        del self.rnn
        sizes = [E, *[H * (1 + both_ways)] * (layers - 1)]
        self.rnns = paddle.nn.LayerList(
            [
                paddle.nn.BiRNN(cell(size, H), cell(size, H))
                if both_ways
                else paddle.nn.RNN(cell(size, H))
                for size in sizes
            ]
        )

    def forward(self, ids, lengths):
        states, lasts = self.embed(ids), []
        for rnn in self.rnns:
            states, last = rnn(states)
            lasts.extend(last if isinstance(rnn, paddle.nn.BiRNN) else [last])
        if isinstance(lasts[0], tuple):
            return self.head(states), tuple(paddle.stack(part) for part in zip(*lasts, strict=True))
        return self.head(states), paddle.stack(lasts)


CELLS: Rules = ((r"rnn\.(\w+)_l(\d)", (r"cells.\2.\1",)),)
FORTH: Rules = ((r"rnn\.(\w+)_l(\d)", (r"rnns.\2.cell.\1",)),)
BACK_AND_FORTH: Rules = (
    (r"rnn\.(\w+)_l(\d)_reverse", (r"rnns.\2.cell_bw.\1",)),
    (r"rnn\.(\w+)_l(\d)", (r"rnns.\2.cell_fw.\1",)),
)


class TorchClassifier(torch.nn.Module):
    """Classifies by the mean state, the largest, and the last ones, from learnt first states."""

    def __init__(self, both_ways: bool = False):
        super().__init__()
        width = H * (1 + both_ways)
        self.embed = torch.nn.Embedding(V, E)
        self.rnn = torch.nn.GRU(E, H, 2, bidirectional=both_ways, batch_first=True)
        self.first = torch.nn.Parameter(torch.zeros(2 * (1 + both_ways), 1, H))
        self.norm = torch.nn.LayerNorm(2 * width + 2 * H)
        self.head = torch.nn.Linear(2 * width + 2 * H, CLASSES)

    def mean(self, states, lengths):
        keep = (torch.arange(states.shape[1]) < lengths[:, None]).unsqueeze(-1)
        return (states * keep).sum(1) / lengths.unsqueeze(-1)

    def largest(self, states, lengths):
        keep = (torch.arange(states.shape[1]) < lengths[:, None]).unsqueeze(-1)
        return states.masked_fill(~keep, -torch.inf).amax(1)

    def final(self, last):
        return torch.cat([last[-2], last[-1]], dim=-1)

    def forward(self, ids, lengths):
        x = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        states, last = self.rnn(x, self.first.repeat(1, ids.shape[0], 1))
        states, _ = pad_packed_sequence(states, batch_first=True)
        parts = self.mean(states, lengths), self.largest(states, lengths), self.final(last)
        return self.head(self.norm(torch.cat(parts, dim=-1)))


class PaddleClassifier(paddle.nn.Layer):
    """The port of TorchClassifier."""

    def __init__(self, both_ways: bool = False):
        super().__init__()
        width = H * (1 + both_ways)
        self.embed = paddle.nn.Embedding(V, E)
        direction = "bidirect" if both_ways else "forward"
        self.rnn = paddle.nn.GRU(E, H, 2, direction=direction)
        zeros = paddle.nn.initializer.Constant(0.0)
        shape = [2 * (1 + both_ways), 1, H]
        self.first = self.create_parameter(shape, default_initializer=zeros)
        self.norm = paddle.nn.LayerNorm(2 * width + 2 * H)
        self.head = paddle.nn.Linear(2 * width + 2 * H, CLASSES)

    def begin(self, count):
        return self.first.tile([1, count, 1])

    def mean(self, states, lengths):
        keep = (paddle.arange(states.shape[1]) < lengths[:, None]).unsqueeze(-1)
        return (states * keep.astype(states.dtype)).sum(1) / lengths.unsqueeze(-1).astype(
            states.dtype
        )

    def largest(self, states, lengths):
        keep = (paddle.arange(states.shape[1]) < lengths[:, None]).unsqueeze(-1)
        lowest = paddle.full_like(states, -float("inf"))
        return paddle.where(keep.expand_as(states), states, lowest).max(1)

    def final(self, last):
        return paddle.concat([last[-2], last[-1]], axis=-1)

    def forward(self, ids, lengths):
        x = self.embed(ids)
        states, last = self.rnn(x, self.begin(ids.shape[0]), sequence_length=lengths)
        parts = self.mean(states, lengths), self.largest(states, lengths), self.final(last)
        return self.head(self.norm(paddle.concat(parts, axis=-1)))


def classifier(both_ways: bool = False, **given: Any) -> Twins:
    """Build a classifier pair."""
    seed()
    models = TorchClassifier(both_ways), PaddleClassifier(both_ways)
    return twins(*models, batch(), **LOSSES | given)


LEAVES = tuple(f"{kind}_{of}" for kind in WB for of in ("ih", "hh"))


def _parameters(
    layer: int, *leaves: str, back: bool = False, both_ways: bool = True
) -> tuple[str, ...]:
    """Return what a recurrent network's parameters are called, and the network."""
    cell = ("cell_bw" if back else "cell_fw") if both_ways else "cell"
    names = [f"rnn.{leaf}_l{layer}{'_reverse' if back else ''}" for leaf in leaves or LEAVES]
    names += [f"rnn.{layer}.{cell}.{leaf}" for leaf in leaves or LEAVES]
    return ("rnn", f"rnn.{layer}", f"rnn.{layer}.{cell}", *names)


def _gates(count: int, order: tuple[int, ...], *paths: str) -> Change:
    """Return a change that puts the gates' rows in another order."""

    def rows(array: np.ndarray) -> np.ndarray:
        parts = np.split(array, count)
        return np.concatenate([parts[number] for number in order])

    return weight(rows, *paths)


def _all_of(layer: int, back: bool = False) -> tuple[str, ...]:
    return tuple(f"rnn.{leaf}_l{layer}{'_reverse' if back else ''}" for leaf in LEAVES)


def _swap_all(*pairs: tuple[str, str]) -> Change:
    def change(model: Any) -> None:
        for one, other in pairs:
            swap(one, other)(model)

    return change


def _repeat_all(*pairs: tuple[str, str]) -> Change:
    def change(model: Any) -> None:
        for source, target in pairs:
            repeat(source, target)(model)

    return change


def _forget_more(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array[H : 2 * H] += 1.0
    return array


def _weights(name: str, change: Change, *culprits: str, **given: Any) -> Case:
    build = partial(tagger, change_weights=change, **given)
    return case(name, build, *culprits, stages=WEIGHTS)


def _weight_cases() -> Iterator[Case]:
    first, ways = _all_of(0), {"both_ways": False}
    yield _weights("LSTM gates as i, f, o, g", _gates(4, (0, 1, 3, 2), *first), *_parameters(0))
    yield _weights(
        "LSTM gates as f, i, g, o", _gates(4, (1, 0, 2, 3), *_all_of(1)), *_parameters(1)
    )
    yield _weights("LSTM gates as i, g, f, o, one way", _gates(4, (0, 2, 1, 3), *first),
                   *_parameters(0, both_ways=False), **ways)  # fmt: skip
    yield _weights(
        "GRU gates as z, r, n", _gates(3, (1, 0, 2), *first), *_parameters(0), kind="GRU"
    )
    yield _weights("GRU gates as r, n, z, second layer", _gates(3, (0, 2, 1), *_all_of(1)),
                   *_parameters(1), kind="GRU")  # fmt: skip
    yield _weights("gates of the recurrent weights alone", _gates(4, (0, 1, 3, 2), "rnn.weight_hh_l0"),
                   *_parameters(0, "weight_hh"))  # fmt: skip
    yield _weights("RNN's recurrent weight turned", weight(np.transpose, "rnn.weight_hh_l1"),
                   *_parameters(1, "weight_hh"), kind="RNN")  # fmt: skip
    yield _weights("RNN's input and recurrent weights exchanged",
                   swap("rnn.weight_ih_l0", "rnn.weight_hh_l0"),
                   *_parameters(0, "weight_ih", "weight_hh"), kind="RNN")  # fmt: skip
    yield _weights("GRU's biases exchanged", swap("rnn.bias_ih_l0", "rnn.bias_hh_l0"),
                   *_parameters(0, "bias_ih", "bias_hh"), kind="GRU")  # fmt: skip
    yield _weights("recurrent bias left at zero", weight(np.zeros_like, "rnn.bias_hh_l1"),
                   *_parameters(1, "bias_hh"))  # fmt: skip
    yield _weights("forget bias of one added", weight(_forget_more, "rnn.bias_ih_l0"),
                   *_parameters(0, "bias_ih"))  # fmt: skip
    yield _weights("directions exchanged", _swap_all(*zip(_all_of(1), _all_of(1, True), strict=True)),
                   *_parameters(1), *_parameters(1, back=True))  # fmt: skip
    yield _weights("first direction's weights twice",
                   _repeat_all(*zip(_all_of(0), _all_of(0, True), strict=True)),
                   *_parameters(0, back=True))  # fmt: skip
    yield _weights("first layer's weights twice", _repeat_all(*zip(_all_of(0), _all_of(1), strict=True)),
                   *_parameters(1, both_ways=False), **ways)  # fmt: skip
    yield _weights("layers exchanged", _swap_all(*zip(_all_of(0), _all_of(1), strict=True)),
                   *_parameters(0, both_ways=False), *_parameters(1, both_ways=False), **ways)  # fmt: skip
    yield _weights("tokens off by one", weight(partial(np.roll, shift=1, axis=0), "embed.weight"),
                   *below("embed", "weight"))  # fmt: skip
    yield _weights("head's halves exchanged", weight(partial(np.roll, shift=H, axis=0), "head.weight"),
                   *below("head", "weight"))  # fmt: skip
    for kind, order in (("LSTM", (0, 1, 3, 2)), ("GRU", (1, 0, 2))):
        paths = tuple(f"cells.1.{leaf}" for leaf in LEAVES)
        yield _weights(f"{kind} cell's gates in another order",
                       _gates(len(order), order, *paths), *below("cells.1", *LEAVES), "rnn",
                       *(f"rnn.{leaf}_l1" for leaf in LEAVES), kind=kind, both_ways=False,
                       sides=(TorchTagger, PaddleCells), torch_rules=CELLS)  # fmt: skip


def _tagged(self, ids, lengths, **given):
    x = self.embed(ids)
    if given.get("backwards"):
        x = x.flip(1)
    first = given["first"](x) if "first" in given else None
    counted = None if given.get("uncounted") else lengths
    states, last = self.rnn(x, first, sequence_length=counted)
    states = given.get("merge", lambda states: states)(states)
    return self.head(states), given.get("last", lambda last: last)(last)


def _code(
    name: str, culprits: tuple[str, ...] = ("",), stages=FORWARD, change=None, **given
) -> Case:
    """Return a case of the tagger; without `change`, `given` says what its forward does otherwise."""
    built = {key: given.pop(key) for key in ("kind", "both_ways", "layers") if key in given}
    change = change or override("", forward=lambda *a, **k: _tagged(*a, **k, **given))
    return case(name, partial(tagger, change=change, **built), *culprits, stages=stages)


def _ones(x):
    return tuple(paddle.ones([4, x.shape[0], H], x.dtype) for _ in range(2))


def _summed(states):
    forth, back = states.chunk(2, axis=-1)
    return paddle.concat([forth + back, paddle.zeros_like(back)], axis=-1)


def _forth_alone(states):
    forth, back = states.chunk(2, axis=-1)
    return paddle.concat([forth, paddle.zeros_like(back)], axis=-1)


def _back_first(states):
    forth, back = states.chunk(2, axis=-1)
    return paddle.concat([back, forth], axis=-1)


def _interleaved(states):
    forth, back = states.chunk(2, axis=-1)
    return paddle.stack([forth, back], axis=-1).reshape(states.shape)


def _not_turned_back(states):
    forth, back = states.chunk(2, axis=-1)
    return paddle.concat([forth, back.flip(1)], axis=-1)


def _batch_first_last(last):
    return tuple(part.transpose([1, 0, 2]).reshape(part.shape) for part in last)


def _detached_cell(self, number, x, state):
    return PaddleCells.call(self, number, x, [part.detach() for part in state])


def _detached_memory(self, number, x, state):
    return PaddleCells.call(self, number, x, [state[0], state[1].detach()])


def _other_state(self, number, x, state):
    return PaddleCells.call(self, number, x, state[::-1])


def _padding_runs_on(self, new, old, step, lengths):
    return new


def _one_step_more(self, new, old, step, lengths):
    return PaddleCells.kept(self, new, old, step, lengths + 1)


def _hidden_kept_alone(self, new, old, step, lengths):
    return [PaddleCells.kept(self, new, old, step, lengths)[0], *new[1:]]


def _begin_with_ones(self, x):
    return [[paddle.ones([x.shape[0], H], x.dtype)] * self.parts for _ in self.cells]


def _lstm_step(self, inputs, states=None, **given):
    gates = (
        inputs @ self.weight_ih.t() + self.bias_ih + states[0] @ self.weight_hh.t() + self.bias_hh
    )
    i, f, g, o = gates.chunk(4, axis=-1)
    i, o = paddle.nn.functional.sigmoid(i), paddle.nn.functional.sigmoid(o)
    f = paddle.nn.functional.sigmoid(f + given.get("forget", 0.0))
    memory = f * states[1] + i * (g if given.get("linear") else paddle.tanh(g))
    if given.get("coupled"):
        memory = f * states[1] + (1 - f) * paddle.tanh(g)
    hidden = o * (memory if given.get("open") else paddle.tanh(memory))
    return hidden, (hidden, memory)


def _gru_step(self, inputs, states=None, **given):
    xr, xz, xn = (inputs @ self.weight_ih.t() + self.bias_ih).chunk(3, axis=-1)
    hr, hz, hn = (states @ self.weight_hh.t() + self.bias_hh).chunk(3, axis=-1)
    reset, update = paddle.nn.functional.sigmoid(xr + hr), paddle.nn.functional.sigmoid(xz + hz)
    if given.get("reset_first"):
        rows, bias = self.weight_hh[2 * H :], self.bias_hh[2 * H :]
        new = paddle.tanh(xn + (reset * states) @ rows.t() + bias)
    else:
        new = paddle.tanh(xn + reset * hn)
    kept = 1 - update if given.get("turned") else update
    hidden = kept * states + (1 - kept) * new
    return hidden, hidden


def _in_cells(
    name: str, kind: str, change: Change, *culprits: str, stages=FORWARD
) -> Iterator[Case]:
    """Yield a fault of cells in a loop, beside torch's cells, and beside torch's own network."""
    given = {"kind": kind, "both_ways": False, "change": change}
    for sides, rules in (((TorchCells, PaddleCells), ()), ((TorchTagger, PaddleCells), CELLS)):
        build = partial(tagger, sides=sides, torch_rules=rules, **given)
        own = ("rnn",) if rules else ()
        yield case(f"{name}, beside {sides[0].__name__}", build, *culprits, *own, stages=stages)


def _cells(step: Any, *paths: str, **given: Any) -> Change:
    return override(
        *paths or ("cells.0", "cells.1"), forward=lambda *a, **k: step(*a, **k, **given)
    )


def _cell_cases() -> Iterator[Case]:
    both = ("cells.0", "cells.1")
    yield from _in_cells("forget gate moved", "LSTM", _cells(_lstm_step, forget=1.0), *both)
    yield from _in_cells(
        "no tanh of the new memory", "LSTM", _cells(_lstm_step, linear=True), *both
    )
    yield from _in_cells(
        "no tanh of the memory", "LSTM", _cells(_lstm_step, "cells.1", open=True), both[1]
    )
    yield from _in_cells("input gate coupled", "LSTM", _cells(_lstm_step, coupled=True), *both)
    yield from _in_cells(
        "reset before the product", "GRU", _cells(_gru_step, reset_first=True), *both
    )
    yield from _in_cells(
        "update gate turned", "GRU", _cells(_gru_step, "cells.0", turned=True), both[0]
    )
    change = override("", call=_other_state)
    yield from _in_cells("hidden state and memory exchanged", "LSTM", change, "")
    change = override("", kept=_padding_runs_on)
    yield from _in_cells("padded steps not masked", "LSTM", change, "")
    yield from _in_cells("one padded step too many", "GRU", override("", kept=_one_step_more), "")
    change = override("", kept=_hidden_kept_alone)
    yield from _in_cells("memory runs on through padding", "LSTM", change, "")
    yield from _in_cells("first states of one", "GRU", override("", begin=_begin_with_ones), "")
    change = override("", call=_detached_cell)
    yield from _in_cells("states detached", "GRU", change, "", *both, stages=BACKWARD)
    change = override("", call=_detached_memory)
    yield from _in_cells("memory detached", "LSTM", change, "", *both, stages=BACKWARD)


def _tagger_cases() -> Iterator[Case]:
    yield _code("lengths not used", uncounted=True)
    yield _code("sentence read backwards", backwards=True)
    yield _code("first states of one, whole network", first=_ones)
    yield _code("directions summed", merge=_summed)
    yield _code("forward states alone", merge=_forth_alone)
    yield _code("backward states first", merge=_back_first)
    yield _code("directions interleaved", merge=_interleaved)
    yield _code("backward states not turned back", merge=_not_turned_back)
    yield _code("last states exchanged", last=lambda last: last[::-1])
    yield _code("last states of the batch as of layers", last=_batch_first_last)
    yield _code("last states detached", last=lambda last: tuple(it.detach() for it in last),
                stages=BACKWARD)  # fmt: skip
    yield _code("GRU: lengths not used", kind="GRU", uncounted=True)
    yield _code("embedding frozen", below("embed", "weight"), (), frozen("embed"))
    yield case("time first, as if batch first", partial(
        tagger, sides=(TorchPadded, PaddlePadded), port={"time_major": True},
        torch_options={"batch_first": False}), "rnn", stages=FORWARD)  # fmt: skip
    yield case("batch first, as if time first", partial(
        tagger, sides=(TorchPadded, PaddleTimeFirst), kind="GRU",
        torch_options={"batch_first": False}, change=_unlengthened),
        "rnn", "", stages=FORWARD)  # fmt: skip
    names = ("rnn", *(f"rnn.{layer}{it}" for layer in (0, 1) for it in ("", ".cell")))
    yield case("relu for tanh", partial(
        tagger, "RNN", both_ways=False, port={"activation": "relu"}), *names, stages=FORWARD)  # fmt: skip
    yield case("tanh for relu", partial(
        tagger, "RNN", both_ways=False, torch_options={"nonlinearity": "relu"}), *names,
        stages=FORWARD)  # fmt: skip
    reverse = tuple(n for layer in (0, 1) for n in _parameters(layer, back=True))
    yield case("one way for two", partial(tagger, port={"both_ways": False}), *reverse, "head",
               "head.weight", *_parameters(1))  # fmt: skip
    yield case("two layers for three", partial(tagger, layers=3, port={"layers": 2}), *_parameters(2),
               *_parameters(2, back=True))  # fmt: skip
    biases = tuple(f"cells.{layer}" for layer in (0, 1))
    yield case("no recurrent bias", partial(
        tagger, both_ways=False, sides=(TorchTagger, PaddleCells), torch_rules=CELLS,
        port={"bias_hh_attr": False}), "rnn", "rnn.bias_hh_l0", "rnn.bias_hh_l1", *biases,
        *(f"{cell}.bias_hh" for cell in biases))  # fmt: skip
    yield case("GRU for LSTM", partial(tagger, port={"kind": "GRU"}, paddle_loss=_all_squares),
               *_parameters(0), *_parameters(1))  # fmt: skip


def _padded_forward(self, ids, lengths):
    states, last = self.rnn(self.embed(ids).transpose([1, 0, 2]))
    return self.head(states.transpose([1, 0, 2])), last


def _unlengthened(model: Any) -> None:
    override("", forward=_padded_forward)(model)


def _classifier_cases() -> Iterator[Case]:
    def planted(name: str, *culprits: str, stages=FORWARD, **members: Any) -> Case:
        build = partial(classifier, change=override("", **members))
        return case(name, build, *culprits or ("",), stages=stages)

    yield planted("mean counts padding", mean=lambda self, states, lengths: states.mean(1))
    yield planted("largest of padding too", largest=lambda self, states, lengths: states.max(1))
    yield planted("last states in the other order",
                  final=lambda self, last: paddle.concat([last[-1], last[-2]], axis=-1))  # fmt: skip
    yield planted("last state of one layer twice",
                  final=lambda self, last: paddle.concat([last[-1], last[-1]], axis=-1))  # fmt: skip
    yield planted("first states not used", "", "first", begin=lambda self, count: paddle.zeros(
        [2, count, H], self.first.dtype))  # fmt: skip
    yield planted("first states shuffled", begin=lambda self, count: self.first.flip(0).tile(
        [1, count, 1]))  # fmt: skip
    yield planted("first states detached", "", "first", stages=BACKWARD,
                  begin=lambda self, count: self.first.detach().tile([1, count, 1]))  # fmt: skip
    yield planted("last state detached", stages=BACKWARD, final=lambda self, last: paddle.concat(
        [last[-2].detach(), last[-1]], axis=-1))  # fmt: skip
    yield case("norm's eps", partial(classifier, change=setting("norm", _epsilon=1e-12)), "norm",
               stages=FORWARD)  # fmt: skip
    yield case("first states frozen", partial(classifier, change=frozen("first")), "first")
    # Paddle's kernel: with first states, both ways and lengths, the recurrent weights' gradient is wrong.
    names = (n for layer in (0, 1) for back in (False, True) for n in _parameters(layer, back=back))
    yield case("Paddle's own gradient", partial(classifier, True), *names, stages=BACKWARD)


def _dropout(port: float) -> Twins:
    return tagger(dropout=0.5, port={"dropout": port})


def _cell_pair(kind: str, sides: tuple[Any, Any], **given: Any) -> Twins:
    return tagger(kind, both_ways=False, sides=sides, **given)


LAST_WITHIN: Rules = ((r"cells\.(\d)\.(\w+)", (r"rnn.\2_l\1",)),)
FAITHFUL = [
    *(case(f"{kind}, packed and counted", partial(tagger, kind)) for kind in TORCH_KINDS),
    *(case(f"{kind}, one way, one layer", partial(tagger, kind, 1, False)) for kind in TORCH_KINDS),
    case("RNN of relu", partial(tagger, "RNN", torch_options={"nonlinearity": "relu"},
                                port={"activation": "relu"})),
    case("time first, batch first", partial(
        tagger, sides=(TorchPadded, PaddlePadded), torch_options={"batch_first": False})),
    case("batch first, time first", partial(
        tagger, sides=(TorchTagger, PaddleTimeFirst), port={"time_major": True})),
    case("cells both", partial(_cell_pair, "LSTM", (TorchCells, PaddleCells))),
    case("GRU cells both", partial(_cell_pair, "GRU", (TorchCells, PaddleCells))),
    case("network, cells", partial(_cell_pair, "LSTM", (TorchTagger, PaddleCells), torch_rules=CELLS)),
    case("GRU network, cells", partial(
        _cell_pair, "GRU", (TorchTagger, PaddleCells), torch_rules=CELLS)),
    case("cells, network", partial(
        _cell_pair, "LSTM", (TorchCells, PaddleTagger), torch_rules=LAST_WITHIN)),
    *(case(f"{kind} {'both' if both_ways else 'one'} way, wrapped cells", partial(
        tagger, kind, both_ways=both_ways, sides=(TorchPadded, PaddleWrapped),
        torch_options={"batch_first": False}, torch_rules=rules))
      for kind in ("LSTM", "GRU") for both_ways, rules in ((True, BACK_AND_FORTH), (False, FORTH))),
    case("cells written out", partial(
        _cell_pair, "LSTM", (TorchTagger, PaddleCells), torch_rules=CELLS, change=_cells(_lstm_step))),
    case("classifier of learnt first states", classifier),
    case("no bias; the port's are zeros that stay", partial(
        tagger, both_ways=False, sides=(TorchTagger, PaddleCells), torch_rules=CELLS,
        torch_options={"bias": False}, port={"bias_ih_attr": False, "bias_hh_attr": False})),
]  # fmt: skip
RANDOM = [
    case("dropout between the layers", partial(_dropout, 0.5)),
    case("dropout between the layers left out", partial(_dropout, 0.0), "rnn", stages=FORWARD),
]
"""Pairs whose dropout neither framework lets anyone replace."""

CASES = [
    *FAITHFUL, *_weight_cases(), *_cell_cases(), *_tagger_cases(), *_classifier_cases(), *RANDOM
]  # fmt: skip
