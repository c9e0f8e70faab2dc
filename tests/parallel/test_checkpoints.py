"""Rank files: cut, joined, and refused where they do not fit together."""

from pathlib import Path

from reprod_align.errors import WeightsError
from reprod_align.parallel import Mesh, Placement
from reprod_align.parallel.checkpoints import cut_checkpoint, join_rank_files, name_rank_file
from reprod_align.weights.reading import open_checkpoint

import numpy as np
import paddle
import pytest

LIES = {
    "up": Placement(None, 1),
    "qkv": Placement(None, 1, (4, 2, 2)),
    "embed": Placement(None, 0, (), 5, 6),
}
MESH = Mesh(1, 2)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    tensors = {"up": paddle.randn([3, 4]), "qkv": paddle.randn([3, 8]).astype("bfloat16"),
               "embed": paddle.randn([5, 2]), "norm": paddle.ones([3])}  # fmt: skip
    paddle.save(tensors, str(tmp_path / "whole.pdparams"))
    return tmp_path / "whole.pdparams"


def test_rank_files_and_back_bit_for_bit(whole: Path, tmp_path: Path) -> None:
    cut_checkpoint(whole, tmp_path / "ranks", LIES, MESH)
    assert paddle.load(str(tmp_path / "ranks" / name_rank_file(1)))["embed"].shape == [3, 2]
    join_rank_files(tmp_path / "ranks", tmp_path / "back.pdparams", LIES, MESH)
    before, after = (open_checkpoint(p).tensors for p in (whole, tmp_path / "back.pdparams"))
    for name, held in before.items():
        assert after[name].dtype == held.dtype
        np.testing.assert_array_equal(after[name].read(), held.read())


def test_rank_files_that_do_not_fit_together_are_refused(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ranks"
    cut_checkpoint(whole, folder, LIES, MESH)
    second = folder / name_rank_file(1)
    held = paddle.load(str(second))
    paddle.save(held | {"norm": held["norm"] + 1}, str(second))
    with pytest.raises(WeightsError, match="norm"):
        join_rank_files(folder, tmp_path / "back.pdparams", LIES, MESH)
    paddle.save({**held, "more": held["norm"]}, str(second))
    with pytest.raises(WeightsError, match="more"):
        join_rank_files(folder, tmp_path / "back.pdparams", LIES, MESH)
    assert not (tmp_path / "back.pdparams").exists()
