"""Converts a checkpoint to the rank files that PaddleNLP loads, and back, bit for bit.

The models' own map and its proof are `conversion`'s; what is added here is the cutting: how a tensor lies
on the ranks is read from the port itself, which is built on them.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from reprod_align.base.blocks import Array
from reprod_align.conversion import Conversion, ConversionResult, convert
from reprod_align.conversion.weight_map import ModelPair, WeightMap
from reprod_align.errors import ReprodError, WeightsError
from reprod_align.pair.file import PairFile, open_file
from reprod_align.parallel import Mesh, Placement, parse_mesh
from reprod_align.parallel.launch import Ranks
from reprod_align.parallel.side import Overheard, ParallelSide
from reprod_align.weights import Stored, TensorEntry, find_kind, open_checkpoint, write_checkpoint

import numpy as np

_LARGEST: Final = 2**62


def name_rank_file(part: int) -> str:
    """Return what PaddleNLP calls the file of one rank of tp."""
    return f"model_state.tp{part:02d}.pdparams"


def convert_parallel(
    order: Conversion, file: Path, parallel: str, given: WeightMap | None = None
) -> ConversionResult:
    """Convert PyTorch's checkpoint to a folder of rank files, or such a folder to PyTorch's checkpoint.

    order: source and target; the one that is not named as a checkpoint is the folder. file: the pair. The
    result is proven as `convert` proves it, on the ranks. Nothing is written if that fails.
    """
    mesh = parse_mesh(parallel)
    if mesh.dp > 1 or mesh.tp < 2:
        raise ReprodError(f"--parallel {parallel}: rank files are of tp alone: give tp=2")
    assert isinstance(order.source, Path)
    joins = (order.source / name_rank_file(0)).is_file()
    if not joins and order.target.suffix:
        raise ReprodError(f"{order.target}: expected a folder for the {mesh.tp} rank files")
    if joins:
        find_kind(order.target)
    with ExitStack() as stack:
        pair_file = stack.enter_context(open_file(file, PairFile))
        reference = Overheard(pair_file.side("torch"))
        ranks = stack.enter_context(Ranks(mesh))
        port = ParallelSide(ranks, str(file.resolve()), reference, mesh, pair_file.fused())
        reference.describe()
        names = {saved: own or saved for saved, own in port.saved_names().items()}
        port.describe()
        lies = {
            saved: port.placements[own] for saved, own in names.items() if own in port.placements
        }
        inputs, settings = pair_file.inputs(), pair_file.settings()
        pair = ModelPair(reference, port, inputs, settings.get("name_map"))
        # beside the target: the whole checkpoint may not fit elsewhere
        order.target.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(stack.enter_context(TemporaryDirectory(dir=order.target.parent)))
        whole = folder / "whole.pdparams"
        if joins:
            join_rank_files(order.source, whole, lies, mesh)
            return convert(replace(order, source=whole, source_framework="paddle"), pair, given)
        outcome = convert(replace(order, target=whole), pair, given)
        if outcome.written is not None:
            cut_checkpoint(whole, order.target, lies, mesh)
            outcome.written = order.target
            outcome.amount += f", in {mesh.tp} rank files"
        return outcome


def cut_checkpoint(source: Path, folder: Path, lies: Mapping[str, Placement], mesh: Mesh) -> None:
    """Write the rank files of a Paddle checkpoint; all get their names, or none.

    lies: how each tensor lies on the ranks; a tensor without an entry is whole on every rank.
    """
    tensors = open_checkpoint(source).tensors
    with ExitStack() as stack:
        for part in range(mesh.tp):
            made = {name: lies.get(name, Placement()).scatter(held.read(), mesh, part)
                    for name, held in tensors.items()}  # fmt: skip
            _write(stack, folder / name_rank_file(part), tensors, made)


def join_rank_files(folder: Path, target: Path, lies: Mapping[str, Placement], mesh: Mesh) -> None:
    """Write one Paddle checkpoint of a folder's rank files.

    Raises WeightsError if a file is missing or holds other tensors, or if ranks hold different numbers of a
    tensor that all hold whole.
    """
    files = [open_checkpoint(folder / name_rank_file(part)).tensors for part in range(mesh.tp)]
    more = folder / name_rank_file(mesh.tp)
    if more.exists():
        raise WeightsError(f"{more} is there too: the folder is of more than {mesh.tp} ranks")
    for part, tensors in enumerate(files):
        other = sorted(tensors.keys() ^ files[0].keys())
        if other:
            raise WeightsError(
                f"{folder / name_rank_file(part)}: {other[0]} stands in one rank file alone"
            )
    with ExitStack() as stack:
        made = {name: _join(name, lies.get(name, Placement()), [t[name] for t in files], mesh)
                for name in files[0]}  # fmt: skip
        _write(stack, target, files[0], made)


def _join(name: str, placement: Placement, parts: Sequence[Stored], mesh: Mesh) -> Array:
    arrays = [part.read() for part in parts]
    if placement.tp is None and any(not np.array_equal(arrays[0], one) for one in arrays[1:]):
        raise WeightsError(f"{name}: every rank holds all of it, and the rank files differ")
    return placement.gather(arrays, mesh)


def _write(
    stack: ExitStack, path: Path, tensors: Mapping[str, Stored], made: Mapping[str, Array]
) -> None:
    """Write arrays under the names and dtypes of stored tensors; ties stay ties."""
    first: dict[Stored, str] = {}
    entries = []
    for name, array in made.items():
        tied = first.setdefault(tensors[name], name)
        entries.append(
            TensorEntry(name, tensors[name].dtype, array.shape, "" if tied == name else tied)
        )
    stack.enter_context(write_checkpoint(path, "paddle", entries, made.__getitem__, _LARGEST))
