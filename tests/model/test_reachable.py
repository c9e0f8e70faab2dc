"""What a model, its loss and its optimizer function hold, wherever it hides."""

from functools import partial

from reprod_align.backends.torch.private import contents
from reprod_align.model.functions import find_reachable

import torch

TABLE = torch.ones(3)
SCALE = torch.full((), 2.0)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)
        self.tables = [{"plain attribute": torch.zeros(1)}]


def test_tensors_and_modules_are_found_once_each() -> None:
    labels, criterion = torch.ones(4), torch.nn.CrossEntropyLoss(weight=torch.ones(2))

    def loss(output, scale=SCALE):
        return criterion(output, labels) * scale * TABLE.sum()

    model = Model()
    found = find_reachable(
        model,
        [partial(loss), None],
        lambda value: isinstance(value, torch.Tensor),
        lambda value: isinstance(value, torch.nn.Module),
        contents,
    )
    wanted = [
        model.fc.weight, model.fc.bias, model.tables[0]["plain attribute"],
        labels, criterion.weight, loss.__defaults__[0], TABLE,
    ]  # fmt: skip
    assert {id(tensor) for tensor in found.tensors} == set(map(id, wanted))
    assert len(found.tensors) == len(wanted)
    assert set(found.modules) == {model, model.fc, criterion}
