"""Every test of `align` tries few edits at a fault, unless it asks for more."""

import pytest


@pytest.fixture(autouse=True)
def as_few(request: pytest.FixtureRequest) -> None:
    """Take `few_edits`, but for what `make suite` runs, and for the fixture `every_edit`."""
    if request.node.get_closest_marker("longer") or "every_edit" in request.fixturenames:
        return
    request.getfixturevalue("few_edits")


@pytest.fixture
def every_edit() -> None:
    """Let `align` try as many edits as it does for a user: the one that mends stands far behind."""
