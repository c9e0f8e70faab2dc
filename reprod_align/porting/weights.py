"""The port's weights: PyTorch's, converted, and proven by a forward pass of both."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from reprod_align.conversion.convert import Order, convert
from reprod_align.conversion.models import Pair
from reprod_align.errors import ReprodError
from reprod_align.porting.pair_text import WEIGHTS


def convert_weights(pair: Pair, folder: Path, proven: bool) -> str:
    """Write the port's weights to a folder; return what was done, or why not, in a sentence.

    proven: whether the outputs must agree for the file to be written.
    """
    model = pair.torch.model  # type: ignore[attr-defined]  # a LocalSide
    state = model.state_dict()
    if not state:
        return "the model has no weights"
    with TemporaryDirectory(dir=folder) as passing:
        source = Path(passing, "weights.pth")
        import_module("torch").save(state, source)
        try:
            done = convert(Order(source, folder / WEIGHTS, check=proven), pair)
        except ReprodError as error:
            return f"the weights were not converted: {error}"
    if done.written is None:
        faults = done.faults or [done.agreement.summary() if done.agreement else "not written"]
        return f"the weights were not converted: {'; '.join(faults[:4])}"
    agreed = f"; {done.agreement.summary()}" if done.agreement else ""
    return f"{WEIGHTS}: {done.amount}{agreed}"
