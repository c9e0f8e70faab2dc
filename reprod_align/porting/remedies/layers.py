"""Layers and their functions that compute something else than PyTorch's of the same name."""

from reprod_align.porting.remedy import Substitute


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
        if self._padding_idx == -1:
            return rows
        is_pad = (input == self._padding_idx).unsqueeze(-1)
        return paddle.where(is_pad, rows.detach(), rows)
'''
