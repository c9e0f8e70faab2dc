"""Says which rows of tables the given batch never reads, where it reads a range: positions, as a rule."""

from reprod_align.alignment.findings import Findings
from reprod_align.alignment.runner import Runner
from reprod_align.base.text import shorten
from reprod_align.model.trace import Array

import numpy as np

_NAMED = 3  # tables in one sentence
_FEWEST = 2  # rows that are a range


def note_unread_rows(runner: Runner, findings: Findings) -> None:
    """Note the tables of which the batch reads a range of rows and not all.

    Words are no range: of a vocabulary some are missing in every batch.
    """
    torch, found = runner.pairing.torch, []
    for path, module in torch.modules.items():
        table = torch.tensors.get(f"{path}.weight")
        if module.kind == "Embedding" and table is not None:
            read = _find_rows(runner, path)
            first, last = (int(read[0]), int(read[-1])) if read.size else (0, 0)
            whole = last - first + 1
            if _FEWEST <= read.size == whole < table.shape[0]:
                found.append(f"rows {first} to {last} of {table.shape[0]} of {path}")
    if found:
        findings.leave_unjudged("batches", f"the given batch reads {shorten(found, _NAMED)} only")


def _find_rows(runner: Runner, path: str) -> Array:
    """Return the rows that the calls of an embedding read, each once, in order."""
    calls = [call for call in runner.expected.calls if call.path == path]
    given = [leaf.array.reshape(-1) for call in calls for leaf in call.inputs.values()]
    whole = [array for array in given if array.dtype.kind in "iu"]
    return np.unique(np.concatenate(whole)) if whole else np.zeros(0)
