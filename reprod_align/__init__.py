"""Prove that a PaddlePaddle model is a faithful port of a PyTorch one, or learn where it is not.

    report = align(torch_model, paddle_model, inputs)       # any pair: see docs/align.md
    print(report)

    record = Recorder("log_reprod/forward_torch.npy")       # the staged way, on each side
    record.add("logits", logits)
    record.save()

    compare_records(load_record(a), load_record(b)).passed  # the rules: see records/compare.py
    sys.exit(check(gate))                                   # the same with a log and an exit code

Importing this imports no framework, and each name's module only when the name is used (PEP 562).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reprod_align.alignment import align
    from reprod_align.base.difference import Difference, compare_arrays
    from reprod_align.errors import ReprodError
    from reprod_align.mending.fix import fix
    from reprod_align.mending.result import Mend, Mended
    from reprod_align.parallel.align import align_parallel
    from reprod_align.records.compare import compare_records
    from reprod_align.records.gate import Gate, check
    from reprod_align.records.record import Recorder, load_record, save_record
    from reprod_align.records.verdict import (
        EXACT,
        STRICT,
        Comparison,
        Rule,
        official_rule,
    )
    from reprod_align.report import Finding, Report
    from reprod_align.sections import align_sections

__all__ = [
    "Comparison",
    "Difference",
    "EXACT",
    "Finding",
    "Gate",
    "Mend",
    "Mended",
    "Recorder",
    "Report",
    "ReprodError",
    "Rule",
    "STRICT",
    "align",
    "align_parallel",
    "align_sections",
    "check",
    "compare_arrays",
    "compare_records",
    "fix",
    "load_record",
    "official_rule",
    "save_record",
]

__version__ = "0.1.0"

_HOMES = {
    "alignment": "align",
    "errors": "ReprodError",
    "mending.fix": "fix",
    "mending.result": "Mend Mended",
    "parallel.align": "align_parallel",
    "base.difference": "Difference compare_arrays",
    "records.compare": "compare_records",
    "records.gate": "Gate check",
    "records.record": "Recorder load_record save_record",
    "records.verdict": "Comparison EXACT Rule STRICT official_rule",
    "report": "Finding Report",
    "sections": "align_sections",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import the module that a public name lives in, the first time the name is used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
