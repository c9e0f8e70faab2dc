"""Prove that a PaddlePaddle model is a faithful port of a PyTorch one, or learn where it is not.

    report = align(torch_model, paddle_model, inputs)       # any pair: see docs/align.md
    print(report)

    record = Recorder("log_reprod/forward_torch.npy")       # the staged way, on each side
    record.add("logits", logits)
    record.save()

    compare_records(load_record(a), load_record(b)).passed  # the rules: see records/compare.py
    sys.exit(check(gate))                                   # the same with a log and an exit code

Importing this imports no framework, and each name's module only when the name is used (PEP 562). The imports
below are the one list of public names: type checkers follow them, `__getattr__` looks them up.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reprod_align.alignment import align as align
    from reprod_align.base.difference import Difference as Difference
    from reprod_align.base.difference import compare_arrays as compare_arrays
    from reprod_align.errors import ReprodError as ReprodError
    from reprod_align.mending.mend import fix as fix
    from reprod_align.mending.result import Mend as Mend
    from reprod_align.mending.result import Mended as Mended
    from reprod_align.parallel.align import align_parallel as align_parallel
    from reprod_align.records import Recorder as Recorder
    from reprod_align.records import load_record as load_record
    from reprod_align.records import save_record as save_record
    from reprod_align.records.compare import EXACT as EXACT
    from reprod_align.records.compare import STRICT as STRICT
    from reprod_align.records.compare import Comparison as Comparison
    from reprod_align.records.compare import Rule as Rule
    from reprod_align.records.compare import compare_records as compare_records
    from reprod_align.records.compare import official_rule as official_rule
    from reprod_align.records.gate import Gate as Gate
    from reprod_align.records.gate import check as check
    from reprod_align.report import Finding as Finding
    from reprod_align.report import Report as Report
    from reprod_align.sections import align_sections as align_sections
else:  # checkers would take any name for a public one

    def __getattr__(name: str) -> object:
        """Import the module that a public name lives in, the first time the name is used."""
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value: object = getattr(import_module(_HOME[name]), name)
        globals()[name] = value
        return value


def _find_homes() -> dict[str, str]:
    """Return the module of each public name, as the imports for type checkers have it."""
    body = ast.parse(Path(__file__).read_text(encoding="utf-8")).body
    (block,) = (node.body for node in body if isinstance(node, ast.If))
    imports = [node for node in block if isinstance(node, ast.ImportFrom)]
    return {one.name: str(node.module) for node in imports for one in node.names}


_HOME = _find_homes()
__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
