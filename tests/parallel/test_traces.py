"""Traces that ranks recorded, against one process's: what each should hold is cut out of the whole."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reprod_align.commands import main
from reprod_align.errors import ReprodError
from reprod_align.parallel import Mesh, Placement
from reprod_align.parallel.traces import compare_ranks, load_ranks
from reprod_align.traces import Rank, RecordedTrace, TraceTensor, load_trace, save_trace
from reprod_align.traces.diff import TraceDiff
from reprod_align.traces.sketch import sketch_with_rows
from tests.conftest import REPOSITORY
from tests.parallel.cases import CASES
from tests.traces.made import tensor

import numpy as np
import pytest

_RNG = np.random.default_rng(7)
_X = _RNG.standard_normal((8, 6, 48))
_W = _RNG.standard_normal((64, 48))
_Q = _RNG.standard_normal((96, 48))
_LOSS = np.asarray(1.5)
_TP, _DP = Placement(tp=0), Placement(dp=0)
_FUSED = {"qkv.weight": (48, 24, 24)}

# name: tensor, phase, module and leaf, how it lies on the ranks, replicas, ranks of each
_SOUND: dict[str, tuple[np.ndarray, str, str, Placement, int, int]] = {
    "row": (_W, "parameter gradient", "up.weight", _TP, 1, 4),
    "column": (_W, "parameter gradient", "down.weight", Placement(tp=1), 1, 4),
    "fused": (_Q, "parameter gradient", "qkv.weight", Placement(tp=0, pieces=(48, 24, 24)), 1, 4),
    "padded": (
        _W[:61],
        "parameter gradient",
        "embed.weight",
        Placement(tp=0, length=61, padded=64),
        1,
        4,
    ),
    "replicated": (_W, "parameter gradient", "norm.weight", Placement(), 2, 2),
    "examples": (_X, "output", "block.", _DP, 4, 1),
    "examples and heads": (_X, "output", "block.", Placement(dp=0, tp=2), 2, 2),
}


def held(
    values: np.ndarray, whole: bool, phase: str, module: str, leaf: str, order: int
) -> TraceTensor:
    made = tensor(values, phase=phase, module=module, leaf=leaf, order=order)
    if whole or values.size <= 16:
        return made
    found, rows = sketch_with_rows(values)
    return replace(made, whole=False, values=found, rows=rows)


def make(rank: Rank | None, tensors: Sequence[TraceTensor]) -> RecordedTrace:
    return RecordedTrace("made", "whole", tuple(tensors), rank)


def compare(
    case: str, whole: bool = True, plant: Callable[[list[np.ndarray]], object] = lambda parts: None
) -> TraceDiff:
    values, phase, name, placement, dp, tp = _SOUND[case]
    module, _, leaf = name.rpartition(".")
    mesh = Mesh(dp, tp)
    parts = [placement.scatter(values, mesh, rank).copy() for rank in range(mesh.size)]
    plant(parts)
    first = make(
        None, [held(_LOSS, True, "output", "", "", 0), held(values, True, phase, module, leaf, 1)]
    )
    ranks = [
        make(Rank(number, dp, tp), [held(_LOSS, True, "output", "", "", 0),
                                    held(part, whole, phase, module, leaf, 1)])
        for number, part in enumerate(parts)
    ]  # fmt: skip
    return compare_ranks(first, ranks, fused=_FUSED)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("case", _SOUND)
def test_parts_of_the_whole_agree(case: str, whole: bool) -> None:
    result = compare(case, whole)
    assert result.passed and len(result.rows) == 2, result.summary()


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("case", _SOUND)
def test_one_rank_that_is_off_is_named(case: str, whole: bool) -> None:
    def plant(parts: list[np.ndarray]) -> None:
        parts[1][..., 5] += 0.01

    result = compare(case, whole, plant)
    assert not result.passed and result.first is not None
    assert "rank 1" in result.first.words


def _exchange(parts: list[np.ndarray]) -> None:
    parts[0], parts[1] = parts[1], parts[0]


def _scale(times: float) -> Callable[[list[np.ndarray]], None]:
    def plant(parts: list[np.ndarray]) -> None:
        for part in parts:
            part *= times

    return plant


def _apart(parts: list[np.ndarray]) -> None:
    """Leave to each replica its own gradient, of which the mean is right."""
    noise = _RNG.standard_normal(parts[0].shape)
    for number, part in enumerate(parts):
        part += noise if number < len(parts) // 2 else -noise


def _in_parts(parts: list[np.ndarray]) -> None:
    """Leave to each rank of tp its own part of the sum."""
    noise = _RNG.standard_normal(parts[0].shape)
    for number, part in enumerate(parts):
        part *= 0.5
        part += -noise if number % 2 else noise


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    ("case", "plant", "words"),
    [
        ("row", _exchange, "rank 0 holds what rank 1 should"),
        ("row", _scale(4), "summed over tp"),
        ("replicated", _scale(2), "2 times what it should be"),
        ("replicated", _apart, "not averaged over dp"),
        ("replicated", _in_parts, "not summed over tp"),
    ],
)
def test_a_wrong_reduction_is_told_by_the_numbers(
    case: str, plant: Callable[[list[np.ndarray]], None], words: str, whole: bool
) -> None:
    result = compare(case, whole, plant)
    assert result.first is not None and words in result.first.words


def test_fused_sizes_are_needed_where_pieces_are_cut_by_themselves() -> None:
    _, _, _, placement, dp, tp = _SOUND["fused"]
    parts = [held(placement.scatter(_Q, Mesh(dp, tp), n), True, "parameter gradient", "qkv", "weight", 0)
             for n in range(4)]  # fmt: skip
    first = make(None, [held(_Q, True, "parameter gradient", "qkv", "weight", 0)])
    ranks = [make(Rank(n, dp, tp), [part]) for n, part in enumerate(parts)]
    assert compare_ranks(first, ranks, fused=_FUSED).passed
    assert not compare_ranks(first, ranks).passed


def _two_replicas(gradients: float, loss: float = 0.5) -> TraceDiff:
    """A run on two replicas: losses of their own, gradients of a mean over half of the examples."""

    def of(x: np.ndarray, loss: float, times: float) -> list[TraceTensor]:
        return [held(x, True, "input", "", "[0]", 0), held(np.asarray(loss), True, "output", "", "", 1),
                held(x * times, True, "gradient", "block", "", 2)]  # fmt: skip

    order = [0, 2, 4, 6, 1, 3, 5, 7]
    parts = np.split(_X[order], 2)
    ranks = [make(Rank(n, 2, 1), of(part, 1.5 + (loss if n else -loss), gradients))
             for n, part in enumerate(parts)]  # fmt: skip
    return compare_ranks(make(None, of(_X, 1.5, 1.0)), ranks)


def test_replicas_have_losses_of_their_own_and_see_examples_in_any_order() -> None:
    assert _two_replicas(2.0).passed
    assert _two_replicas(1.0).passed  # the loss is summed
    assert not _two_replicas(3.0).passed


def test_axes_that_sequence_parallel_turns() -> None:
    turned = np.split(_X.transpose(1, 0, 2), 2)
    ranks = [make(Rank(n, 1, 2), [held(part, True, "output", "block", "", 0)])
             for n, part in enumerate(turned)]  # fmt: skip
    first = make(None, [held(_X, True, "output", "block", "", 0)])
    assert compare_ranks(first, ranks).passed
    assert not compare_ranks(
        first, [replace(r, rank=o.rank) for r, o in zip(ranks[::-1], ranks, strict=True)]
    ).passed


def test_padding_of_logits_is_left_out() -> None:
    values = _X[..., :45]
    padded = np.concatenate([values, np.full((8, 6, 3), -7.0)], -1)
    for whole in (True, False):
        ranks = [make(Rank(n, 1, 2), [held(part, whole, "output", "head", "", 0)])
                 for n, part in enumerate(np.split(padded, 2, -1))]  # fmt: skip
        result = compare_ranks(make(None, [held(values, True, "output", "head", "", 0)]), ranks)
        assert result.passed and ("not compared" in result.rows[0].words) != whole
    padded[0, 0, 44] += 1
    ranks = [make(Rank(n, 1, 2), [held(part, True, "output", "head", "", 0)])
             for n, part in enumerate(np.split(padded, 2, -1))]  # fmt: skip
    assert not compare_ranks(
        make(None, [held(values, True, "output", "head", "", 0)]), ranks
    ).passed


def test_parts_of_what_the_reference_keeps_a_sketch_of_are_refused() -> None:
    first = make(None, [held(_W, False, "output", "up", "", 0)])
    ranks = [make(Rank(n, 1, 2), [held(part, True, "output", "up", "", 0)])
             for n, part in enumerate(np.split(_W, 2))]  # fmt: skip
    with pytest.raises(ReprodError, match='record the reference with mode="whole"'):
        compare_ranks(first, ranks)


def test_another_shape_is_told() -> None:
    ranks = [make(Rank(n, 1, 2), [held(_W[:5], True, "output", "up", "", 0)]) for n in range(2)]
    row = compare_ranks(make(None, [held(_W, True, "output", "up", "", 0)]), ranks).rows[0]
    assert not row.passed and "(64, 48) expected, the ranks hold (5, 48)" in row.words


def _write(folder: Path, changes: Mapping[int, Any]) -> Path:
    for number in range(2):
        rank = changes.get(number, Rank(number, 1, 2))
        if rank != "missing":
            values = tensor(_W if number in changes and rank is None else np.split(_W, 2)[number])
            save_trace(folder / f"{number}.trace", RecordedTrace("made", "whole", (values,), rank))
    return folder


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({0: "missing", 1: "missing"}, "no trace of a rank"),
        ({0: "missing"}, "rank 0 of 2 is missing"),
        ({1: None}, "one process recorded it"),
        ({1: Rank(0, 1, 2)}, "rank 0 stands there twice"),
        ({1: Rank(1, 2, 1)}, "other degrees"),
        ({1: Rank(1, 1, 2, "pp=2")}, "recorded with pp=2"),
    ],
)
def test_a_folder_that_is_not_one_run_is_one_line(
    tmp_path: Path, changes: Mapping[int, Any], words: str
) -> None:
    with pytest.raises(ReprodError, match=words):
        load_ranks(_write(tmp_path, changes))


@pytest.mark.parametrize("wrong", [Rank(2, 1, 2), Rank(-1, 1, 2), Rank(0, 0, 1), Rank(0, 1, 2**20)])
def test_a_rank_that_cannot_be_is_refused(tmp_path: Path, wrong: Rank) -> None:
    save_trace(tmp_path / "a.trace", RecordedTrace("made", "whole", (tensor(_W),), wrong))
    with pytest.raises(ReprodError, match="cannot be read|is not a trace"):
        load_trace(tmp_path / "a.trace")


def test_the_command_takes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_trace(tmp_path / "whole.trace", RecordedTrace("made", "whole", (tensor(_W),)))
    folder = tmp_path / "ranks"
    folder.mkdir()
    words = ["diff", str(tmp_path / "whole.trace"), str(_write(folder, {}))]
    assert main(words) == 0
    assert main([*words, "--fused", "qkv"]) == 2
    assert "expected as qkv.weight=24,12,12" in capsys.readouterr().err


_RECORDING = """
import os, runpy, sys
from paddle.distributed import fleet
from reprod_align.backends.paddle import parallel, trace
import paddle
parallel.start_engine({"dp_degree": 1, "mp_degree": 2})
parallel.seed_streams()
paddle.set_default_dtype("float64")
pair = runpy.run_path(sys.argv[1])
model = pair["paddle_model"]()
part = fleet.get_hybrid_communicate_group().get_model_parallel_rank()
pair["_load_own"](model, part, 2, model.blocks[-1])
model.eval()
with trace.record_trace(model, f"{sys.argv[2]}/rank{part}.trace"):
    model(*(paddle.to_tensor(array) for array in pair["inputs"].values()))[1].backward()
os._exit(0)
"""


@pytest.mark.parametrize("fault", ["", "norm-gradient-summed"])
def test_ranks_of_the_engine_record_what_they_hold(tmp_path: Path, fault: str) -> None:
    from reprod_align.backends.torch.trace import record_trace

    import torch

    case = next(
        c
        for c in CASES
        if (c.model, c.mesh, c.fault) == ("decoder", "tp=2", fault) and not c.options
    )
    path, ranks = case.write(tmp_path), tmp_path / "ranks"
    ranks.mkdir()
    script = tmp_path / "record.py"
    script.write_text(_RECORDING)
    launch = ("-m", "paddle.distributed.launch", "--nproc_per_node=2", "--backend=gloo")
    subprocess.run(
        [sys.executable, "-W", "ignore", *launch, "--log_dir", str(tmp_path / "logs"), script, path, ranks],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"},
        capture_output=True, check=True, timeout=300,
    )  # fmt: skip
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), space)
    model = space["torch_model"]().eval().double()
    with record_trace(model, tmp_path / "whole.trace"):
        model(*(torch.tensor(array) for array in space["inputs"].values()))[1].backward()
    fused = {"qkv.weight": (24, 12, 12), "qkv.bias": (24, 12, 12)}
    result = compare_ranks(
        load_trace(tmp_path / "whole.trace"), load_ranks(ranks), allow_unpaired=True, fused=fused
    )
    assert len(result.rows) > 90 and result.passed != bool(fault), result.summary()
    if fault:
        assert result.first is not None and "norm2" in result.first.module
        assert "summed over tp" in result.headline
