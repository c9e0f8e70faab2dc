"""PyTorch, Paddle, PyTorch: bit-identical for every kind of layer and dtype, and read by the frameworks."""

from pathlib import Path

from reprod_align.conversion import Conversion, ConversionResult, convert
from reprod_align.conversion.weight_map import ModelPair, read_map, write_map
from reprod_align.weights.reading import open_checkpoint
from tests.conversion.pairs import KINDS, make_pair, make_state

import paddle
import pytest
import torch

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
TARGETS = ("w.pdparams", "w.safetensors", "w.pdparams.index.json", "w.safetensors.index.json")
SOURCES = ("w.bin", "w.safetensors", "w.bin.index.json", "w.pth")


def run(source: Path, target: Path, pair: ModelPair | None, **settings: object) -> ConversionResult:
    """Convert; every fault fails the test."""
    done = convert(Conversion(source, target, **settings), pair)  # type: ignore[arg-type]
    assert done.passed and done.faults == [] and done.written == target, done.summary()
    return done


def bits(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    tensors = open_checkpoint(path).tensors
    return {name: (held.dtype, held.shape, held.read().tobytes()) for name, held in tensors.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_layer_in_every_dtype(tmp_path: Path, kind: str):
    pair = make_pair(kind)
    found = None
    for dtype in DTYPES:
        source, there, back = (tmp_path / name for name in ("a.bin", "b.pdparams", "c.bin"))
        state = make_state(kind, dtype)
        torch.save(state, source)
        if found is None:
            done = run(source, there, pair)
            assert done.agreement is not None and done.agreement.relative < 1e-9
            write_map(tmp_path / "map.json", done.map)
            found = read_map(tmp_path / "map.json")
            assert found == done.map
            run(there, back, pair)  # the way back finds the map by itself
        else:  # a map holds for every dtype
            convert(Conversion(source, there, check=False), None, found)
        assert convert(Conversion(there, back, check=False), pair, found).passed
        read = torch.load(back, weights_only=True)
        assert read.keys() == state.keys()
        for name in state:
            assert read[name].dtype == state[name].dtype, name
            assert torch.equal(read[name], state[name]), name


def test_counters_come_back_by_the_map(tmp_path: Path):
    state, pair = make_state("BatchNorm", torch.float32), make_pair("BatchNorm")
    torch.save(state, tmp_path / "a.bin")
    done = run(tmp_path / "a.bin", tmp_path / "b.pdparams", pair)
    back = convert(Conversion(tmp_path / "b.pdparams", tmp_path / "c.bin"), pair, done.map)
    assert back.passed
    read = torch.load(tmp_path / "c.bin", weights_only=True)
    assert all(torch.equal(read[name], state[name]) for name in state)
    assert int(read["0.num_batches_tracked"]) == 7


@pytest.mark.parametrize("kind", ["tied", "LSTM", "three to qkv"])
def test_every_file_format(tmp_path: Path, kind: str):
    state, pair = make_state(kind, torch.bfloat16), make_pair(kind)
    torch.save(state, tmp_path / "a.bin")
    found = run(tmp_path / "a.bin", tmp_path / "b.pdparams", pair).map
    expected = bits(tmp_path / "b.pdparams")
    for target, source in zip(TARGETS, SOURCES, strict=True):
        there, back = tmp_path / "there" / target, tmp_path / "back" / source
        settings = {"check": False, "shard_size": 200}
        done = convert(Conversion(tmp_path / "a.bin", there, **settings), None, found)  # type: ignore[arg-type]
        assert done.written == there
        got = bits(there)
        assert all(got[name] == expected[name] for name in got)
        missing = expected.keys() - got.keys()
        assert missing == (set(found.tied["paddle"]) if "safetensors" in target else set())
        convert(Conversion(there, back, source_framework="paddle", **settings), None, found)  # type: ignore[arg-type]
        read = {name: held.read().tobytes() for name, held in open_checkpoint(back).tensors.items()}
        ours = {name: held.read().tobytes()
                for name, held in open_checkpoint(tmp_path / "a.bin").tensors.items()}  # fmt: skip
        assert read == {name: data for name, data in ours.items() if name in read}
        allowed = {"positions"} | (set(found.tied["torch"]) if "safetensors" in source else set())
        assert ours.keys() - read.keys() <= allowed


@pytest.mark.parametrize("kind", ["tied", "LSTM", "BatchNorm", "weight_norm"])
def test_the_models_themselves_load_what_is_written(tmp_path: Path, kind: str):
    make_torch, make_paddle, _ = KINDS[kind]
    torch.save(make_state(kind, torch.float32), tmp_path / "a.bin")
    run(tmp_path / "a.bin", tmp_path / "b.pdparams", make_pair(kind))
    model = make_paddle()
    assert model.set_state_dict(paddle.load(str(tmp_path / "b.pdparams"))) == ([], [])
    run(tmp_path / "b.pdparams", tmp_path / "c.bin", make_pair(kind))
    make_torch().load_state_dict(torch.load(tmp_path / "c.bin", weights_only=True), strict=True)


def test_tied_weights_are_stored_once(tmp_path: Path):
    torch.save(make_state("tied", torch.float32), tmp_path / "a.bin")
    run(tmp_path / "a.bin", tmp_path / "b.pdparams", make_pair("tied"))
    run(tmp_path / "b.pdparams", tmp_path / "c.bin", make_pair("tied"))
    tensors = open_checkpoint(tmp_path / "c.bin").tensors
    assert tensors["head.weight"] == tensors["embedding.weight"]
    held = torch.load(tmp_path / "c.bin", weights_only=True)
    assert held["head.weight"].data_ptr() == held["embedding.weight"].data_ptr()
