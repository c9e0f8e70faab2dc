"""Runs in both precisions, with and without a twin."""

from typing import Any

from tests.curves.runs import Values, run

import numpy as np
import pytest


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def reference(dtype: Any) -> Values:
    return run(dtype=dtype)


@pytest.fixture(scope="module", params=[True, False], ids=["twin", "no twin"])
def twin(request: pytest.FixtureRequest, dtype: Any) -> Values | None:
    return run(dtype=dtype, nudge=1) if request.param else None
