"""Finds the call at which one side stops the gradient and the other does not."""

from collections.abc import Sequence

from reprod_align.alignment.lines.search import Difference
from reprod_align.alignment.lines.values import KnownValues
from reprod_align.model.source.operation import RETURN, Operation
from reprod_align.model.trace import Array


def find_cut(
    ours: Sequence[Operation], theirs: Sequence[Operation], relative: float
) -> Difference | None:
    """Return the first call, of either side, through which a gradient flows on the other side alone."""
    for at, (here, there) in enumerate(((theirs, ours), (ours, theirs))):
        flowing = KnownValues(_results(there, True), relative)
        stopped = KnownValues(_results(there, False), relative)
        for operation in here:
            if operation.differentiable or operation.name == RETURN:
                continue
            for made in operation.outputs:
                if made.dtype.kind != "f" or stopped.knows(made) or not flowing.knows(made):
                    continue
                other = _maker(there, operation, relative)
                pair = (other, operation) if at == 0 else (operation, other)
                return Difference("cut", *pair)
    return None


def _results(operations: Sequence[Operation], flowing: bool) -> list[Array]:
    return [made for one in operations if one.differentiable == flowing and one.name != RETURN
            for made in one.outputs]  # fmt: skip


def _maker(operations: Sequence[Operation], like: Operation, relative: float) -> Operation | None:
    wanted = KnownValues(like.outputs, relative)
    return next((one for one in operations if any(map(wanted.knows, one.outputs))), None)
