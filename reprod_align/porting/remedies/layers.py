"""Layers and their functions that compute something else than PyTorch's of the same name."""

from reprod_align.porting.remedy import Case, Substitute


class PadRowFunction(Substitute):
    """Paddle's embedding returns zeros for padding_idx; PyTorch returns the row, without a gradient."""

    entry = "embedding-padding-idx"
    names = ("paddle.nn.functional.embedding",)
    helper = '''
def embed(input, weight, padding_idx=None):
    """Return the rows of a table; the row of padding_idx gets no gradient."""
    rows = paddle.nn.functional.embedding(input, weight)
    if padding_idx is None:
        return rows
    is_pad = (input == padding_idx % weight.shape[0]).unsqueeze(-1)
    return paddle.where(is_pad, rows.detach(), rows)
'''


class PadRowLayer(Substitute):
    """Paddle's Embedding returns zeros for padding_idx; PyTorch's returns the row, without a gradient."""

    entry = "embedding-padding-idx"
    names = ("paddle.nn.Embedding",)
    helper = '''
class Embedding(paddle.nn.Embedding):
    """An embedding whose row of padding_idx is returned, and gets no gradient."""

    def forward(self, input):
        rows = paddle.nn.functional.embedding(input, self.weight)
        if self._padding_idx in (None, -1):
            return rows
        is_pad = (input == self._padding_idx).unsqueeze(-1)
        return paddle.where(is_pad, rows.detach(), rows)
'''


class SlopeOfGivenInput(Substitute):
    """Paddle's gradient of prelu ends the process where its input needs no gradient."""

    names = ("paddle.nn.PReLU",)
    helper = '''
class GivenPReLU(paddle.nn.PReLU):
    """A PReLU whose input may be one that needs no gradient."""

    def forward(self, x):
        axes = [1, -1] + [1] * (x.ndim - 2)
        slope = self._weight if self._weight.size == 1 else self._weight.reshape(axes)
        return paddle.where(x > 0, x, slope * x)
'''

    def applies(self, case: Case) -> bool:
        """Tell whether a fault ended the process."""
        return case.find(r"the process ended with SIG") is not None
