"""Checkpoints of both frameworks: read tensor by tensor, from a file or an address, and written."""

from reprod_align.weights.reading import INDEX, Checkpoint, open_checkpoint, read_tensors
from reprod_align.weights.remote import FileLocation, RemoteFile, locate
from reprod_align.weights.stored import ArraysOnDemand, Stored, TensorEntry, name_all, widen
from reprod_align.weights.torch_file import Opaque
from reprod_align.weights.writing import find_kind, name_files, write_checkpoint

__all__ = [
    "ArraysOnDemand",
    "Checkpoint",
    "FileLocation",
    "INDEX",
    "Opaque",
    "RemoteFile",
    "Stored",
    "TensorEntry",
    "find_kind",
    "locate",
    "name_all",
    "name_files",
    "open_checkpoint",
    "read_tensors",
    "widen",
    "write_checkpoint",
]
