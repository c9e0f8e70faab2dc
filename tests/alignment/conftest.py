"""Every test of `align` tries few edits at a fault, unless it asks for more."""

import pytest


@pytest.fixture(autouse=True)
def as_few(request: pytest.FixtureRequest) -> None:
    """Take `few_edits`, but for what is marked as longer, or as asking for every edit."""
    marks = map(request.node.get_closest_marker, ("longer", "every_edit"))
    if not any(marks):
        request.getfixturevalue("few_edits")
