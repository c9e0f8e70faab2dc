"""What a finding states, as structure. The one place that reads its words.

Today's state: `Finding` holds module, lines and code as fields, and the cause in words. What the words
state is read here, by `_WORDS`, and from the code that they quote. A finding that holds its code and its
edit as fields will be read from those, and nothing else of the benchmark changes.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.mutants.cause import Told


def read_finding(finding: Mapping[str, Any], pairs: Mapping[str, str]) -> Told:
    """Return what a finding states."""
    return Told()
