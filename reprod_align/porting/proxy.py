"""Whether the unchanged source runs on Paddle: `paddle.enable_compat()` gives it Paddle as `torch`."""

import math
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from reprod_align.alignment import compare_sides
from reprod_align.base.progress import tell
from reprod_align.errors import ReprodError
from reprod_align.model.inputs import check_inputs
from reprod_align.model.side import Inputs
from reprod_align.pair.file import PairFile, open_file
from reprod_align.pair.remote import RemoteSide
from reprod_align.porting.pair_text import PAIR, write_pair
from reprod_align.porting.source import Source
from reprod_align.report import PORT_RUNS, Check, Finding, Report

_MODEL = '''

def paddle_model():
    """Return the same source's model, its torch being Paddle."""
    import paddle

    paddle.enable_compat()
    from reprod_align.pair.call import call_named

    try:
        return call_named(TORCH)
    except Exception as error:
        from reprod_align.pair.blame import locate_error

        raise locate_error(error, SOURCE) from error
'''


def judge_source(source: Source, inputs: Inputs) -> Report:
    """Compare the model of the source on PyTorch with that of the same source on Paddle.

    Paddle's is made and run in a process of its own. If it cannot be made, the report has that finding.
    """
    check_inputs(inputs)
    with TemporaryDirectory() as folder:
        write_pair(source, inputs, Path(folder))
        path = Path(folder, PAIR)
        path.write_text(
            path.read_text(encoding="utf-8") + f"SOURCE = Path({str(source.path)!r})\n" + _MODEL,
            encoding="utf-8",
        )
        with RemoteSide(sys.executable, path, "paddle") as port, open_file(path, PairFile) as file:
            tell("the source on Paddle")
            try:
                port.hello  # noqa: B018  (the model is made before this is answered)
            except ReprodError as error:
                return _refuse(
                    str(error).partition(f"{PAIR}, line ")[2].partition(": ")[2] or str(error)
                )
            return compare_sides(file.side("torch"), port, file.inputs())


def _refuse(text: str) -> Report:
    """Return the report on a source whose model cannot be made on Paddle."""
    what = f"the model cannot be made on Paddle: {text}"
    finding = Finding("forward", "", "", what, math.inf, 0.0, kind="port-raises")
    return Report("diverges", [finding], checks=[Check("forward", PORT_RUNS, math.inf, False)])
