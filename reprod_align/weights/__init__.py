"""Weights from PyTorch's layout to Paddle's, by the type of the layer that owns them."""

from reprod_align.weights.reading import Checkpoint, open_checkpoint
from reprod_align.weights.remote import Place, RemoteFile, locate
from reprod_align.weights.stored import ArraysOnDemand, Entry, Stored, name_all, widen
from reprod_align.weights.torch_file import Opaque
from reprod_align.weights.writing import INDEX, find_kind, name_files, write_checkpoint

__all__ = [
    "ArraysOnDemand",
    "Checkpoint",
    "Entry",
    "INDEX",
    "Opaque",
    "Place",
    "RemoteFile",
    "Stored",
    "find_kind",
    "locate",
    "name_all",
    "name_files",
    "open_checkpoint",
    "widen",
    "write_checkpoint",
]
