"""Each fault of a conversion, planted into the source, the result or the map, is named."""

from collections.abc import Callable
from pathlib import Path

from reprod_align.conversion import Conversion, convert, verify
from reprod_align.conversion.weight_map import ModelPair, WeightMap, read_map, write_map
from reprod_align.errors import ReprodError, WeightsError
from reprod_align.pair import paddle_side, torch_side
from tests.conversion.pairs import make_pair, make_state

import numpy as np
import paddle
import pytest
import torch
from safetensors.torch import save_file

State = dict[str, torch.Tensor]
Arrays = dict[str, np.ndarray]


def swap(state: State, first: str, second: str) -> None:
    state[first], state[second] = state[second], state[first]


IN_SOURCE: dict[str, tuple[str, Callable[[State], object], str]] = {
    "missing": ("Linear", lambda s: s.pop("0.bias"), "missing: 0.bias, for 0.bias"),
    "extra": ("Linear", lambda s: s.update(more=torch.ones(2)), r"left over: more \(2,\)"),
    "misshapen": ("Linear", lambda s: s.update({"1.weight": s["1.weight"].t()}),
                  r"misshapen: 1.weight is \(8, 3\), the model has \(3, 8\)"),
    "dtype": ("Linear", lambda s: s.update({"0.bias": s["0.bias"].long()}),
              "wrong dtype: 0.bias is int64, the model's holds floats"),
    "parts of different dtypes": ("three to qkv",
                                  lambda s: s.update({"k_proj.bias": s["k_proj.bias"].half()}),
                                  "wrong dtype: q_proj.bias .* are float16, float32"),
    "untied": ("tied", lambda s: s.update({"head.weight": s["head.weight"] + 1}),
               "untied: embedding.weight and head.weight are one tensor in the model"),
}  # fmt: skip


@pytest.mark.parametrize("fault", IN_SOURCE)
def test_a_fault_in_the_source_is_listed_and_nothing_is_written(tmp_path: Path, fault: str):
    kind, plant, message = IN_SOURCE[fault]
    state = make_state(kind, torch.float32)
    plant(state)
    torch.save(state, tmp_path / "a.bin")
    done = convert(Conversion(tmp_path / "a.bin", tmp_path / "b.pdparams"), make_pair(kind))
    assert len(done.faults) == 1
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(done.faults[0])
    assert not done.passed and done.written is None
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


IN_RESULT: dict[str, tuple[str, Callable[[Arrays], object], str]] = {
    "missing": ("Linear", lambda s: s.pop("0.bias"), r"missing: 0.bias \(8,\)"),
    "extra": ("Linear", lambda s: s.update(more=np.ones(2)), r"left over: more \(2,\)"),
    "transposed, square": ("Linear", lambda s: s.update({"0.weight": s["0.weight"].T.copy()}),
                           "differs: 0.weight: not transposed"),
    "transposed": ("Linear", lambda s: s.update({"1.weight": s["1.weight"].T.copy()}),
                   r"misshapen: 1.weight is \(3, 8\), expected \(8, 3\): not transposed"),
    "swapped": ("qkv to three", lambda s: swap(s, "q_proj.weight", "k_proj.weight"),
                "differs: q_proj.weight: the values that belong here are in k_proj.weight"),
    "dtype": ("Linear", lambda s: s.update({"0.bias": s["0.bias"].astype("float16")}),
              "wrong dtype: 0.bias is float16, expected float32"),
    "untied": ("LSTM", lambda s: s.update({"net.0.cell_fw.bias_ih": s["net.0.cell_fw.bias_ih"] + 1}),
               "untied: net.0.cell_fw.bias_ih and net.bias_ih_l0 are one tensor"),
    "gates": ("LSTM", lambda s: s.update({n: np.roll(s["net.weight_hh_l0"], 6, 0) for n in
                                          ("net.weight_hh_l0", "net.0.cell_fw.weight_hh")}),
              r"differs: net.weight_hh_l0: along axis 0 the 4 blocks \(q k v, gates"),
    "zeros": ("Linear", lambda s: s.update({"0.bias": 0 * s["0.bias"]}), "all zeros .* not converted"),
    "scaled": ("Linear", lambda s: s.update({"0.bias": 2 * s["0.bias"]}), "is 2 times PyTorch's"),
    "one element": ("Linear", lambda s: s["0.bias"].__setitem__(3, 9.0), "1 of 8 elements differ"),
}  # fmt: skip


@pytest.mark.parametrize("fault", IN_RESULT)
def test_a_fault_in_what_was_converted_before_is_named(tmp_path: Path, fault: str):
    kind, plant, message = IN_RESULT[fault]
    source, there = tmp_path / "a.bin", tmp_path / "b.pdparams"
    torch.save(make_state(kind, torch.float32), source)
    found = convert(Conversion(source, there), make_pair(kind)).map
    order = Conversion(source, there, check=False)
    assert verify(order, None, found).faults == []
    assert verify(Conversion(source, there), make_pair(kind)).passed
    state = paddle.load(str(there), return_numpy=True)
    plant(state)
    paddle.save({name: paddle.to_tensor(array) for name, array in state.items()}, str(there))
    faults = verify(order, None, found).faults
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(faults[0] if faults else "nothing was found")
    back = Conversion(there, source, check=False)  # the same, the other way round
    assert verify(back, None, found).faults == faults


def test_a_truncated_result_is_named(tmp_path: Path):
    source, there = tmp_path / "a.bin", tmp_path / "b.pdparams"
    torch.save(make_state("Linear", torch.float32), source)
    found = convert(Conversion(source, there), make_pair("Linear")).map
    there.write_bytes(there.read_bytes()[:-20])
    with pytest.raises(WeightsError, match="b.pdparams is truncated"):
        verify(Conversion(source, there), None, found)


def change_map(path: Path, found: WeightMap, *changes: tuple[str, str]) -> WeightMap:
    write_map(path, found)
    text = path.read_text()
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return read_map(path)


def test_a_map_that_swaps_or_does_not_transpose_is_caught_by_the_forward_pass(tmp_path: Path):
    source, there = tmp_path / "a.bin", tmp_path / "b.pdparams"
    torch.save(make_state("qkv to three", torch.float32), source)
    pair = make_pair("qkv to three")
    found = convert(Conversion(source, there), pair).map
    assert found is not None
    there.unlink()
    swapped = change_map(tmp_path / "m", found, ('"q_proj.weight", "k_proj.weight"',
                                                 '"k_proj.weight", "q_proj.weight"'))  # fmt: skip
    plain = change_map(tmp_path / "m", found, (', "transposed": true', ""))
    for wrong in (swapped, plain):
        done = convert(Conversion(source, there), pair, wrong)
        assert not done.passed and done.agreement is not None and not there.exists()
        assert "the outputs of the models differ" in done.summary()
        assert len(done.faults) == 1 and "the map says qkv_proj.weight ->" in done.faults[0]


def test_a_port_with_a_fault_gets_no_file(tmp_path: Path):
    torch.save(make_state("GRU", torch.float32), tmp_path / "a.bin")
    pair = make_pair("GRU")
    pair.paddle.model.net.time_major = True  # type: ignore[attr-defined]
    done = convert(Conversion(tmp_path / "a.bin", tmp_path / "b.pdparams"), pair)
    assert not done.passed and not (tmp_path / "b.pdparams").exists()


class Pooled(torch.nn.Module):
    """A layer that the other model lacks; `used`: whether the output depends on it."""

    def __init__(self, used: bool) -> None:
        super().__init__()
        self.fc, self.pooler, self.used = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3), used

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.fc(x)
        return found + self.pooler(found).sum() if self.used else found


class Plain(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc = paddle.nn.Linear(8, 8)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(x)


def test_a_layer_without_a_counterpart_is_left_out_only_if_the_outputs_do_not_depend_on_it(
    tmp_path: Path,
):
    source, there = tmp_path / "a.bin", tmp_path / "b.pdparams"
    for used in (True, False):
        model = Pooled(used)
        torch.nn.init.ones_(model.pooler.bias)
        torch.save(model.state_dict(), source)
        pair = ModelPair(torch_side(model), paddle_side(Plain()), (np.ones((2, 8)),))
        done = convert(Conversion(source, there), pair)
        assert done.passed is not used and there.exists() is not used
        if used:
            assert done.faults == ["without a counterpart: PyTorch's pooler.weight (3, 8)",
                                   "without a counterpart: PyTorch's pooler.bias (3,)"]  # fmt: skip
        else:
            assert "left out, since the outputs do not depend on it" in done.remarks[0]
    back = convert(Conversion(there, tmp_path / "c.bin"), pair)
    assert back.passed
    read = torch.load(tmp_path / "c.bin", weights_only=True)
    for name, tensor in model.pooler.state_dict().items():  # the model's own
        assert read[f"pooler.{name}"].dtype == torch.float32
        assert torch.equal(read[f"pooler.{name}"], tensor)


def test_what_cannot_be_done_is_said(tmp_path: Path):
    torch.save(make_state("Linear", torch.float32), tmp_path / "a.bin")
    pair = make_pair("Linear")
    with pytest.raises(WeightsError, match="PyTorch weights, and b.pth is a PyTorch file too"):
        convert(Conversion(tmp_path / "a.bin", tmp_path / "b.pth"), pair)
    with pytest.raises(WeightsError, match=r"expected a name that ends with \.bin"):
        convert(Conversion(tmp_path / "a.bin", tmp_path / "b.npz"), pair)
    with pytest.raises(ReprodError, match="--map FILE with --no-check"):
        convert(Conversion(tmp_path / "a.bin", tmp_path / "b.pdparams"))
    with pytest.raises(ReprodError, match="give --pair FILE.py or --map FILE"):
        verify(Conversion(tmp_path / "a.bin", tmp_path / "b.pdparams"))


@pytest.mark.parametrize("target", ["a.safetensors", "linked.safetensors"])
def test_the_source_is_never_written_over(tmp_path: Path, target: str) -> None:
    source = tmp_path / "a.safetensors"
    save_file(make_state("Linear", torch.float32), source)
    (tmp_path / "linked.safetensors").symlink_to(source)
    before = source.read_bytes()
    order = Conversion(source, tmp_path / target, source_framework="torch")
    with pytest.raises(ReprodError, match="is the source"):
        convert(order, make_pair("Linear"))
    assert source.read_bytes() == before
