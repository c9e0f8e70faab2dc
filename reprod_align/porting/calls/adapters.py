"""Classes and functions of the port that take PyTorch's arguments, for layers that are passed around."""

import inspect
from collections.abc import Sequence
from typing import Final

from reprod_align.porting.calls.rows import Row, fill
from reprod_align.porting.calls.torch_names import find_torch

ADAPTERS: Final = {
    "torch.nn.LSTMCell": '''
class {name}(paddle.nn.LSTMCell):
    """An LSTM cell that returns the hidden and the cell state, as PyTorch's does."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        attr = None if bias else False
        super().__init__(input_size, hidden_size, bias_ih_attr=attr, bias_hh_attr=attr)

    def forward(self, input, hx=None):
        _, (hidden, cell) = super().forward(input, hx)
        return hidden, cell
''',
    "torch.nn.GRUCell": '''
class {name}(paddle.nn.GRUCell):
    """A GRU cell that returns the hidden state alone, as PyTorch's does."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        attr = None if bias else False
        super().__init__(input_size, hidden_size, bias_ih_attr=attr, bias_hh_attr=attr)

    def forward(self, input, hx=None):
        hidden, _ = super().forward(input, hx)
        return hidden
''',
    "torch.nn.CTCLoss": '''
class {name}(paddle.nn.Layer):
    """The CTC loss of log-probabilities (T, B, C), its integers as Paddle's kernel takes them."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        return paddle.nn.functional.ctc_loss(
            log_probs, targets.astype("int32"), input_lengths.astype("int64"), target_lengths.astype("int64"),
            blank=self.blank, reduction=self.reduction,
        )
''',
}
"""what a row cannot say"""


def write_adapter(public: str, name: str, rows: Sequence[Row]) -> str:
    """Return the definition of a class or function with PyTorch's arguments, "" if none can be written."""
    if public in ADAPTERS:
        return ADAPTERS[public].format(name=name).strip()
    held = find_torch(public)
    try:
        parameters = list(inspect.signature(held).parameters.values())
    except (TypeError, ValueError):
        return ""
    if not rows or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return ""
    known = {one.name for one in parameters}
    row = next((one for one in rows if set(one.arguments) <= known), None)
    if row is None:
        return ""
    arguments = ", ".join(
        one.name if one.default is one.empty else f"{one.name}={one.default!r}"
        for one in parameters
    )
    body = fill(row, {argument: argument for argument in row.arguments})
    if body is None:
        return ""
    if not isinstance(held, type):
        return f"def {name}({arguments}):\n    return {body}"
    target, _, inside = body.partition("(")
    return (
        f'class {name}({target}):\n    """Paddle\'s layer with PyTorch\'s arguments."""\n\n'
        f"    def __init__(self, {arguments}):\n        super().__init__({inside}"
    )
