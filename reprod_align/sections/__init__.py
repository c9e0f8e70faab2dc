"""`align` for models larger than memory: one section of both models at a time.

Both models are made without memory. Each is run once as a whole, with the weights of one section in
memory at a time; what crosses the sections' borders is kept. Then `align`'s own engine judges the
pair once for each piece, with the piece's sections real and the others replaced by stand-ins, which
return what the sections returned and pass differences on.
"""

from collections.abc import Mapping
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.model.side import Inputs, check_inputs
from reprod_align.model.store import limit_memory
from reprod_align.pair.spec import Function, PairSpec
from reprod_align.report import Report
from reprod_align.sections.judging import judge_sections
from reprod_align.sections.models import Maker, build_model, divide_pair
from reprod_align.sections.reports import StateFile, take_fingerprint
from reprod_align.weights.reading import open_checkpoint

SECTION_SIZE = 70_000_000
"""parameters of a piece: in float64, about 4 GB for both sides (docs/align_reference.md)"""


def align_sections(
    torch_model: Maker,
    paddle_model: Maker,
    inputs: Inputs,
    torch_weights: Path,
    paddle_weights: Path | None = None,
    torch_loss: Function | None = None,
    paddle_loss: Function | None = None,
    torch_optimizer: Function | None = None,
    paddle_optimizer: Function | None = None,
    torch_scheduler: Function | None = None,
    paddle_scheduler: Function | None = None,
    steps: int = 3,
    name_map: Mapping[str, str] | None = None,
    section_size: int = SECTION_SIZE,
    state: Path | None = None,
    memory: int | None = None,
) -> Report:
    """Compare a PyTorch model with its Paddle port as `align` does, one section at a time.

    torch_model, paddle_model: functions that make the models; they are made without memory, so
    that a function must not load weights. torch_weights: a file of weights, or a folder with the
    parts of one: safetensors, `.bin`, `.pth`. paddle_weights: Paddle's own weights, to be compared;
    None: PyTorch's are converted. section_size: parameters of a section and of the sections that
    are judged together; a layer that is larger is a section of its own. state: a file that keeps what
    is done, so that an interrupted run goes on from there. The rest: as for `align`. Further batches are
    not derived: only the inputs given are run.

    Raises ReprodError if an argument can't be what it should be, WeightsError if a file can't be
    read or does not fit its model, ModelFailure if the PyTorch side itself fails.
    """
    from reprod_align.backends.paddle import init as paddle_init
    from reprod_align.backends.torch import init as torch_init
    from reprod_align.pair.sides import paddle_side, torch_side

    check_inputs(inputs)
    if type(section_size) is not int or section_size < 1:
        raise ReprodError(f"section_size: expected a whole number above 0, got {section_size!r}")
    reference = torch_side(
        build_model(torch_model, torch_init), torch_loss, torch_optimizer, torch_scheduler
    )
    port = paddle_side(
        build_model(paddle_model, paddle_init), paddle_loss, paddle_optimizer, paddle_scheduler
    )
    copied = paddle_weights is None
    spec = PairSpec(reference, port, inputs, steps, name_map, copied, memory, further=False).check()
    ours = open_checkpoint(torch_weights)
    theirs = None if paddle_weights is None else open_checkpoint(paddle_weights)
    files = [*ours.files, *(theirs.files if theirs else ())]
    settings = (section_size, steps, name_map)
    print_ = take_fingerprint(files, inputs, (reference, port), settings) if state else ""
    pair = divide_pair(spec, ours.tensors, theirs.tensors if theirs else None, section_size)
    with limit_memory(memory):
        return judge_sections(pair, StateFile(state, print_))
