"""Every kind of file that this project reads: sound samples, and what reads them."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from pipeline.training.state import read_state, write_state
from reprod_align.conversion.weight_map import read_map
from reprod_align.curves.readers import read_curves
from reprod_align.model.trace import Call, Leaf, Trace
from reprod_align.pair.wire import pack, unpack
from reprod_align.randomness import KeyedDraws
from reprod_align.records import load_record, save_record
from reprod_align.traces import RecordedTrace, load_trace, save_trace
from reprod_align.traces.sketch import sketch
from reprod_align.weights.reading import open_checkpoint
from tests.curves import readers
from tests.records.npy import SAMPLE, boxed, npy
from tests.traces.made import tensor

import numpy as np
import paddle
import torch
from safetensors.torch import save_file

VALUES = np.random.default_rng(0).standard_normal((4, 5))


@dataclass(frozen=True)
class Kind:
    """One kind of file."""

    name: str
    """of the file"""
    make: Callable[[Path], list[bytes]]
    """returns sound ones; takes a folder to work in"""
    read: Callable[[Path], object]


def _records(folder: Path) -> list[bytes]:
    curves = {
        "epoch_0_losses": np.linspace(1, 0, 4),
        "epoch_0_accuracy": np.float64(0.5),
        "loss_3": 1.0,
    }
    written = [save_record(folder / "r", one).read_bytes() for one in (SAMPLE, curves)]
    return [*written, *(npy(boxed(SAMPLE, protocol)) for protocol in (2, 3, 5))]


def _traces(folder: Path) -> list[bytes]:
    whole = [tensor(VALUES, module="a"), tensor(np.arange(3), module="b", order=1)]
    whole.append(tensor(VALUES.astype("complex64"), module="c", order=2))
    large = np.random.default_rng(1).standard_normal((40, 40))
    kept = [tensor(sketch(large), whole=False, shape=large.shape), *whole[:1]]
    made = []
    for mode, tensors in (("whole", whole), ("sketch", kept)):
        save_trace(folder / "t", RecordedTrace("PyTorch", mode, tuple(tensors)))
        made.append((folder / "t").read_bytes())
    return made


STATE = {"layer.weight": torch.ones(3, 4), "layer.bias": torch.zeros(3, dtype=torch.bfloat16)}
WRAPPED = {"model": STATE, "epoch": 3, "lr": [0.1, 0.2], "args": {"name": "x"},
           "optimizer": torch.optim.Adam([torch.ones(2)]).state_dict()}  # fmt: skip


def _torch_files(zipped: bool) -> Callable[[Path], list[bytes]]:
    def make(folder: Path) -> list[bytes]:
        made = []
        for content in (STATE, WRAPPED):
            buffer = io.BytesIO()
            torch.save(content, buffer, _use_new_zipfile_serialization=zipped)
            made.append(buffer.getvalue())
        return made

    return make


def _paddle_files(folder: Path) -> list[bytes]:
    state = {"w": paddle.ones([3, 4]), "inner": {"v": paddle.zeros([2], "float64")}, "step": 3}
    made = []
    for protocol in (2, 4):
        paddle.save(state, str(folder / "p"), protocol=protocol)
        made.append((folder / "p").read_bytes())
    return made


def _safetensors(folder: Path) -> list[bytes]:
    save_file(STATE, folder / "s", {"format": "pt"})
    return [(folder / "s").read_bytes()]


def _index(folder: Path) -> list[bytes]:
    (folder / "a.safetensors").write_bytes(_safetensors(folder)[0])
    names = dict.fromkeys(STATE, "a.safetensors")
    return [json.dumps({"metadata": {"total_size": 9}, "weight_map": names}).encode()]


def _states(folder: Path) -> list[bytes]:
    facts = {
        "learner": {"schedule": {"last_lr": 0.1}},
        "position": [0, 1, 2],
        "made_with": {"a": 1},
    }
    write_state(folder / "s", {"model/w": VALUES, "curves/loss": np.arange(3.0)}, facts)
    return [(folder / "s").read_bytes()]


def _list_logs() -> dict[str, Kind]:
    """Return the kinds of logs: the tests of the readers name a file each, and what makes sound ones."""
    found: dict[str, Kind] = {}
    for module in iter_modules(readers.__path__):
        samples = getattr(import_module(f"{readers.__name__}.{module.name}"), "SAMPLES", {})
        found |= {name: Kind(name, make, read_curves) for name, make in samples.items()}
    return found


def _messages(folder: Path) -> list[bytes]:
    leaf = Leaf(np.ones(2), True, np.zeros(2))
    trace = Trace([Call("a", 0, None, {"": leaf}, {"[0]": leaf})], 1.0, {"w": np.ones(3)})
    return [pack([trace, KeyedDraws(1, {"a": "b"}), {1: ("x", {2.5})}])[0]]


def _read_message(path: Path) -> object:
    return unpack(path.read_bytes(), [np.zeros(size, np.uint8) for size in (24, 16, 16, 8)])


def _maps(folder: Path) -> list[bytes]:
    rules = [
        {"torch": "w", "paddle": "w", "transposed": True},
        {"torch": ["a", "b"], "paddle": "c", "parts": [1, 2]},
    ]
    return [json.dumps({"format": 1, "tied": {"torch": {"x": "w"}}, "rules": rules}).encode()]


KINDS: Mapping[str, Kind] = {
    "record": Kind("a.npy", _records, load_record),
    "trace": Kind("a.trace", _traces, load_trace),
    "torch, zip": Kind("a.bin", _torch_files(True), lambda path: read_all(path)),
    "torch, legacy": Kind("a.bin", _torch_files(False), lambda path: read_all(path)),
    "paddle": Kind("a.pdparams", _paddle_files, lambda path: read_all(path)),
    "safetensors": Kind("a.safetensors", _safetensors, lambda path: read_all(path)),
    "index": Kind("a.index.json", _index, lambda path: read_all(path)),
    "checkpoint of Step 5": Kind("a.state", _states, read_state),
    "log as a record": Kind("a.npy", _records, read_curves),
    **_list_logs(),
    "message of a side": Kind("message", _messages, _read_message),
    "weight map": Kind("map.txt", _maps, read_map),
}


def read_all(path: Path) -> object:
    """Open a checkpoint and read every tensor of it."""
    found = open_checkpoint(path)
    return {name: held.read() for name, held in found.tensors.items()}
