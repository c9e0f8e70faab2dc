"""A model that runs section by section computes what the whole model computes."""

from pathlib import Path

from reprod_align.model.backward import Projection
from reprod_align.sections.stream import StreamedSide, add_gradients, at_work, join_runs, run_side
from tests.sections.small import IDS, LAYERS, LIMIT, TorchNet, divide

import numpy as np
import torch


def whole_model(path: Path) -> TorchNet:
    from safetensors.torch import load_file

    model = TorchNet().double().eval()
    model.load_state_dict(load_file(path / "model.safetensors"))
    return model.double()


def test_outputs_and_gradients_are_those_of_the_whole_model(tmp_path: Path) -> None:
    pair = divide(tmp_path, LIMIT)
    stream = StreamedSide(pair.reference.side, pair.reference.shells)
    with at_work(pair.reference):
        trace, crossings = stream.run(IDS)
        stream.add_gradients(IDS, crossings, Projection())
    model, seen = whole_model(tmp_path), []
    model.layers[1].register_forward_pre_hook(
        lambda module, given: (given[0].retain_grad(), seen.append(given[0]))[0]
    )
    output = model(torch.from_numpy(IDS["ids"]))
    assert np.allclose(trace.outputs[""].array, output.detach().numpy(), rtol=1e-12, atol=1e-14)
    from reprod_align.backends.torch import side

    Projection()(side, {"": output}).backward()
    found = crossings["layers.1"][0].inputs["[0][0]"]
    assert np.allclose(found.gradient, seen[0].grad.numpy(), rtol=1e-12, atol=1e-14)
    assert [*crossings] == ["embed", *(f"layers.{at}" for at in range(LAYERS)), "norm", "head"]
    assert not any(side.has_values(one) for one in pair.reference.rest.side.model.parameters())


def test_both_whole_runs_agree(tmp_path: Path) -> None:
    pair = divide(tmp_path, LIMIT)
    inputs = pair.spec.inputs
    reference, port = run_side(pair.reference, inputs), run_side(pair.port, inputs)
    runs = join_runs(pair, add_gradients(pair, reference, port), port)
    ours, theirs = runs.reference.outputs[""].array, runs.port.outputs[""].array
    assert np.allclose(ours, theirs, rtol=0, atol=1e-12)
    assert np.array_equal(run_side(pair.reference, inputs, True).trace.outputs[""].array, ours)
    given, taken = runs.ours["layers.2"][0], runs.theirs["layers.2"][0]
    assert np.array_equal(given.inputs["[0][0]"].array, taken.inputs["[0][0]"].array)
