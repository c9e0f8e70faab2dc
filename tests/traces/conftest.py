"""Every test of traces leaves the frameworks in float32."""

from collections.abc import Iterator

from reprod_align.backends import paddle as paddle_backend
from reprod_align.backends import torch as torch_backend

import pytest


@pytest.fixture(autouse=True)
def precision() -> Iterator[None]:
    yield
    torch_backend.set_precision("float32")
    paddle_backend.set_precision("float32")
