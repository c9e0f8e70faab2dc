"""The pair file of a port: with it `reprod-align pair` proves the port again, wherever it lies."""

import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reprod_align.errors import ReprodError
from reprod_align.model.side import Inputs
from reprod_align.porting.source import Source

import numpy as np

PAIR: Final = "pair.py"
WEIGHTS: Final = "weights.pdparams"
INPUTS: Final = "inputs.npz"
_NAMED: Final = "{name.removeprefix('input '): held[name] for name in held.files}"
_ORDERED: Final = "tuple(held[name] for name in held.files)"
_TEXT: Final = '''"""PyTorch's model and its port: `reprod-align pair {pair}` proves it again."""

import sys
from pathlib import Path

import numpy as np
{imported}
FOLDER = Path(__file__).resolve().parent
TORCH = {torch!r}
PADDLE = {paddle!r}
sys.path[:0] = {paths}


def torch_model():
    """Return the PyTorch model."""
    import torch
    from reprod_align.pair.call import call_named

    torch.manual_seed(0)
    return {torch_made}


def paddle_model():
    """Return the port, with the converted weights."""
    import paddle
    from reprod_align.pair.call import call_named

    model = call_named(PADDLE)
    weights = FOLDER / "{weights}"
    if weights.is_file():
        model.set_state_dict(paddle.load(str(weights)))
    return {paddle_made}


{arrange}def inputs():
    """Return the inputs of both."""
    with np.load(FOLDER / "{inputs}") as held:
        return {gather}
'''


def name_port(source: Source) -> str:
    """Return the name of the port's module."""
    stem = source.name.rpartition(".")[2]
    return f"{stem}_paddle" if stem.isidentifier() else "port_paddle"


def write_pair(source: Source, inputs: Inputs, folder: Path) -> None:
    """Write the pair file and the inputs to a folder. Raises ReprodError for inputs that can't be kept."""
    named = isinstance(inputs, Mapping)
    items = inputs.items() if isinstance(inputs, Mapping) else enumerate(inputs)
    arrays = {f"input {name}": np.asarray(array) for name, array in items}
    if any(array.dtype.hasobject for array in arrays.values()):
        raise ReprodError("--inputs: expected arrays of numbers, got one of objects")
    np.savez(folder / INPUTS, **arrays)  # type: ignore[arg-type]
    root = source.root
    installed = {Path(path).resolve() for path in map(sysconfig.get_path, ("purelib", "platlib"))}
    paths = "[str(FOLDER)]" if root in installed else f"[str(FOLDER), {str(root)!r}]"
    text = _TEXT.format(
        pair=PAIR, weights=WEIGHTS, inputs=INPUTS, paths=paths, gather=_NAMED if named else _ORDERED,
        imported="from reprod_align.porting.nesting import rearrange\n" if source.arrange else "",
        torch_made="rearrange(call_named(TORCH), arrange)" if source.arrange else "call_named(TORCH)",
        paddle_made="rearrange(model, arrange)" if source.arrange else "model",
        arrange=f"{source.arrange}\n\n" if source.arrange else "",
        torch=f"{source.name}:{source.call}", paddle=f"{name_port(source)}:{source.call}",
    )  # fmt: skip
    (folder / PAIR).write_text(text, encoding="utf-8")
