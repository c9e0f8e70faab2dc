"""Each remedy: a draft that fails without it is faithful with it."""

from pathlib import Path

from reprod_align.porting.remedies import REMEDIES, layers, names, tensors
from tests.porting.drafts import NUMBERS, mended, names_of

import numpy as np
import pytest

IDS = (np.array([[0, 3, 1], [2, 0, 0]]),)
NET = "import torch\nfrom torch import Tensor, nn\n\nclass Net(nn.Module):\n"
DRAFT = "import paddle\n\nclass Net(paddle.nn.Module):\n"
CASES = {
    names.LostTorchName: (
        NET + "    def forward(self, x: Tensor | None) -> Tensor:\n        return x * 2\n",
        DRAFT + "    def forward(self, x: (Tensor | None)) -> paddle.Tensor:\n        return x * 2\n",
        NUMBERS,
    ),
    names.LoadingHook: (
        NET + """
    def __init__(self):
        super().__init__()
        self.register_load_state_dict_pre_hook(lambda *_: None)

    def forward(self, x):
        return x.tanh()
""",
        DRAFT + """
    def __init__(self):
        super().__init__()
        self.register_load_state_dict_pre_hook(lambda *_: None)

    def forward(self, x):
        return x.tanh()
""",
        NUMBERS,
    ),
    names.OtherCase: (
        NET + """
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool1d(2)

    def forward(self, x):
        return self.pool(x.unsqueeze(0))
""",
        DRAFT + """
    def __init__(self):
        super().__init__()
        self.pool = paddle.nn.MaxPool1d(2)

    def forward(self, x):
        return self.pool(x.unsqueeze(0))
""",
        NUMBERS,
    ),
    tensors.IndexTransposed: (
        NET + """
    def forward(self, x):
        order = torch.tensor([3, 0, 0, 2])
        return x.unsqueeze(0).permute(0, 2, 1)[:, order]
""",
        DRAFT + """
    def forward(self, x):
        order = paddle.to_tensor([3, 0, 0, 2])
        return x.unsqueeze(0).permute(0, 2, 1)[:, order]
""",
        NUMBERS,
    ),
    layers.PadRowFunction: (
        NET + """
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(5, 3))

    def forward(self, ids):
        return nn.functional.embedding(ids, self.weight, padding_idx=0)
""",
        DRAFT + """
    def __init__(self):
        super().__init__()
        self.weight = paddle.nn.Parameter(paddle.ones([5, 3]))

    def forward(self, ids):
        return paddle.nn.functional.embedding(ids, self.weight, padding_idx=0)
""",
        IDS,
    ),
    layers.PadRowLayer: (
        NET + """
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3, padding_idx=0)

    def forward(self, ids):
        return self.table(ids)
""",
        DRAFT + """
    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(5, 3, padding_idx=0)

    def forward(self, ids):
        return self.table(ids)
""",
        IDS,
    ),
}  # fmt: skip


@pytest.mark.parametrize("remedy", CASES, ids=lambda remedy: remedy.__name__)
def test_a_draft_is_mended_by_its_remedy_alone(remedy: type, tmp_path: Path) -> None:
    course = mended(tmp_path, *CASES[remedy])
    assert not course.first.passed
    assert names_of(course) == [remedy.__name__] and course.outcome.passed
    assert course.steps[0].diff.startswith("--- a/mine_")


def test_every_remedy_has_a_case_and_says_why() -> None:
    assert {type(remedy) for remedy in REMEDIES} == set(CASES)
    assert all(remedy.reason and remedy.reason.endswith(".") for remedy in REMEDIES)
