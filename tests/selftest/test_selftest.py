"""Faults planted in users' own models: which of them their inputs reveal, and that none is left."""

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from models import pd_bert, pt_bert
from reprod_align import commands as cli
from reprod_align import selftest as module
from reprod_align.alignment.locating.experiment import Experiment
from reprod_align.pair import PairSpec
from reprod_align.report import NotJudged, Report
from reprod_align.selftest import SelfTest, plant, selftest
from reprod_align.selftest.plant import PlantedFault
from tests.pairs.bert import CLASSES, CONFIG
from tests.pairs.cnn import PaddleCnn, TorchCnn, X
from tests.pairs.plant import look_trained, port

import numpy as np
import paddle
import pytest
import torch
from paddle.nn import functional

SMALL = replace(CONFIG, num_hidden_layers=1)
RATE = 1e-3
DECAY = 1 / 128  # the same number in float32, as which Paddle's AdamW takes it


def torch_loss(output):
    return torch.nn.functional.cross_entropy(output, torch.tensor([1, 3, 0]), ignore_index=0)


def paddle_loss(output):
    return functional.cross_entropy(output, paddle.to_tensor([1, 3, 0]), ignore_index=0)


def torch_optimizer(model):
    return torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)


def paddle_optimizer(model):
    return paddle.optimizer.AdamW(RATE, parameters=model.parameters(), weight_decay=DECAY)


TRAINING = {
    "torch_loss": torch_loss,
    "paddle_loss": paddle_loss,
    "torch_optimizer": torch_optimizer,
    "paddle_optimizer": paddle_optimizer,
}


def berts(trained: bool = True):
    torch.manual_seed(3)
    paddle.seed(4)
    torch_model, paddle_model = (getattr(m, CLASSES)(SMALL) for m in (pt_bert, pd_bert))
    if trained:
        look_trained(torch_model)
    return torch_model, paddle_model


def rich() -> dict[str, np.ndarray]:
    """Return three padded two-segment sentences; one holds the pad token where the mask keeps it."""
    ids = np.random.default_rng(0).integers(1, 30, (3, 7))
    mask = np.ones((3, 7), "int64")
    mask[1, 5:] = mask[2, 4:] = 0
    ids[0, 2] = 0
    types = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3) * mask
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": types}


def poor() -> dict[str, np.ndarray]:
    """Return one sentence of one word, nothing padded, one segment."""
    one = np.ones((1, 1), "int64")
    return {"input_ids": one * 5, "attention_mask": one, "token_type_ids": one * 0}


def state(model: paddle.nn.Layer) -> dict[str, object]:
    """Return all that a planted fault may have touched, in comparable form."""
    layers = dict(model.named_sublayers(include_self=True))
    return {
        "values": {name: t.numpy().tobytes() for name, t in model.state_dict().items()},
        "dtypes": {name: str(t.dtype) for name, t in model.state_dict().items()},
        "tensors": {name: id(t) for name, t in model.state_dict().items()},
        "flags": {name: t.stop_gradient for name, t in model.named_parameters()},
        "gradients": {name: _bytes(t.grad) for name, t in model.named_parameters()},
        "modes": {path: layer.training for path, layer in layers.items()},
        "attributes": {path: list(vars(layer)) for path, layer in layers.items()},
        "simple": {path: _simple(layer) for path, layer in layers.items()},
        "hooks": {path: _hooks(layer) for path, layer in layers.items()},
        "functions": {name: id(getattr(functional, name)) for name in plant.WATCHED},
    }


def _bytes(tensor):
    return None if tensor is None else tensor.numpy().tobytes()


def _simple(layer):
    return {name: repr(v) for name, v in vars(layer).items() if isinstance(v, float | int | list)}


def _hooks(layer):
    return len(layer._forward_pre_hooks), len(layer._forward_post_hooks)


def invisible(result: SelfTest) -> dict[tuple[str, str], str]:
    return {(one.kind, one.module): one.text for one in result.invisible}


@pytest.fixture(scope="module")
def rich_run():
    torch_model, paddle_model = berts()
    functional.cross_entropy(
        paddle_model(**{name: paddle.to_tensor(array) for name, array in rich().items()}),
        paddle.to_tensor([1, 3, 0]),
    ).backward()  # gradients of the user's own, to be found again
    paddle_model.bert.encoder.eval()
    before = state(paddle_model)
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # what is planted stands in no file that an edit mends
        patch.setattr(Experiment, "explain", lambda *given: pytest.fail("an edit is tried"))
        result = selftest(torch_model, paddle_model, rich(), **TRAINING, steps=2)
    return result, before, state(paddle_model)


def test_rich_inputs_reveal_every_fault(rich_run):
    result = rich_run[0]
    assert not invisible(result)
    assert result.passed
    assert result.count_line == "35 of 35 planted faults revealed"


def test_no_fault_is_revealed_by_an_error_of_the_planting(rich_run):
    assert not [one for one in rich_run[0].planted if "raises" in one.text or "stops" in one.text]


def test_each_fault_is_found_where_it_was_planted(rich_run):
    beside = ("input ignored", "a detached output", "a gradient changed by its size")
    within = [one for one in rich_run[0].planted if one.module and one.kind not in beside
              and not one.text.startswith("not judged: ")]  # fmt: skip
    assert within
    for one in within:
        assert one.module.partition(" and ")[0] in one.text, one


@pytest.mark.parametrize("what", list(state(paddle.nn.Linear(1, 1))))
def test_nothing_is_left_in_the_model(rich_run, what):
    _, before, after = rich_run
    assert after[what] == before[what]


def test_faults_without_a_place_are_listed_and_not_counted(rich_run):
    lines = rich_run[0].summary().splitlines()
    assert any("max <-> average pool" in line and "no place" in line for line in lines)


def test_a_draw_elsewhere_is_revealed_by_what_is_named_as_not_judged(rich_run):
    drawn = [one for one in rich_run[0].planted if one.kind.startswith("a draw from ")]
    assert len(drawn) == 2
    assert all(one.revealed and one.text.startswith("not judged: ") for one in drawn)


@pytest.mark.parametrize(
    ("kind", "before", "revealed"),
    [("random numbers", False, True), ("random numbers", True, False), ("state", False, False)],
)
def test_only_a_new_note_of_its_kind_reveals_a_fault(monkeypatch, kind, before, revealed):
    note = NotJudged(kind, "numpy's generator")
    fault = PlantedFault(
        "fc", lambda side: nullcontext(side), "hidden", "a draw", noted="random numbers"
    )
    monkeypatch.setattr(module, "_compare_in_turn", lambda *given: Report(not_judged=[note]))
    pair = PairSpec(None, None, ())
    outcome = module._try_fault(pair, None, fault, Report(not_judged=[note] if before else []))
    assert outcome.revealed == revealed
    assert outcome.text == ("not judged: numpy's generator" if revealed else "hidden")


def forward_and_tell(self, x):
    """Return a number and a text beside the output."""
    return {"out": self.fc(x), "size": len(x), "name": "told"}


def telling():
    """Return two models of a float input."""
    kinds = (torch.nn.Module, torch.nn.Linear), (paddle.nn.Layer, paddle.nn.Linear)
    for base, linear in kinds:
        model = type("Telling", (base,), {"forward": forward_and_tell})()
        model.fc = linear(3, 2)
        yield model


def test_faults_that_single_runs_do_not_show_are_revealed():
    torch_model, paddle_model = telling()
    rows = (np.random.default_rng(0).standard_normal((4, 3)).astype("float32"),)
    before = state(paddle_model)

    def loss(output):
        return 1e-4 * (output["out"] ** 2).mean()

    result = selftest(torch_model, paddle_model, rows, loss, loss)
    found = {one.kind: one.revealed for one in result.outcomes}
    assert {kind: found[kind] for kind in UNSEEN} == dict.fromkeys(UNSEEN, True)
    assert state(paddle_model) == before


UNSEEN = (
    "a parameter that is a buffer",
    "an int among the outputs changed",
    "a str among the outputs changed",
    "an input's gradient stopped",
    "a state kept from train to eval",
    "a draw from Python's random",
    "a draw from numpy's random",
    "a gradient changed by its size",
)


@pytest.fixture(scope="module")
def poor_run():
    return selftest(*berts(trained=False), poor())


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("softmax over another axis", "longer sequences"),
        ("bias dropped", "every bias of the model is 0 already"),
        ("padding_idx not given", "give a padded batch"),
        ("first example used for all", "one example"),
        ("loss times the batch size", "give torch_loss and paddle_loss"),
        ("a parameter missing from the optimizer", "give torch_optimizer and paddle_optimizer"),
        ("another weight decay", "give torch_optimizer and paddle_optimizer"),
    ],
)
def test_poor_inputs_hide_faults_and_say_why(poor_run, kind, reason):
    hidden = {one.kind: one.text for one in poor_run.invisible}
    assert reason in hidden[kind]


@pytest.mark.parametrize(
    ("kind", "module", "reason"),
    [
        ("input ignored", "attention_mask", "holds 1 alone: give a padded batch"),
        ("input ignored", "token_type_ids", "holds 0 alone: give one in which it varies"),
        ("embedding index ignored", "bert.embeddings.position_embeddings", "longer sequences"),
        ("embedding index ignored", "bert.embeddings.token_type_embeddings", "they vary"),
    ],
)
def test_constant_inputs_are_named(poor_run, kind, module, reason):
    assert reason in invisible(poor_run)[kind, module]


def test_every_invisible_fault_has_a_reason(poor_run):
    assert module.NO_REASON not in invisible(poor_run).values()


def test_poor_inputs_still_reveal_what_they_reach(poor_run):
    revealed = {one.kind for one in poor_run.planted if one.revealed}
    assert {"gelu: erf <-> tanh", "position offset by one", "gamma and beta exchanged"} <= revealed


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean")
def test_convolutional_faults():
    pair = port(TorchCnn, PaddleCnn, X)
    before = state(pair.paddle_model)
    result = selftest(pair.torch_model, pair.paddle_model, X)
    kinds = {one.kind for one in result.planted if one.revealed}
    assert {"average pool: exclusive flag", "max_pool2d -> avg_pool2d", "convolution dilated",
            "convolution padded on the wrong side", "convolution stride 1", "relu -> gelu",
            "running statistics not converted", "batch norm's momentum not inverted"} <= kinds  # fmt: skip
    assert not [one for one in result.planted if "raises" in one.text]
    assert state(pair.paddle_model) == before


def test_a_broken_pair_stops_the_test():
    torch_model, paddle_model = berts()
    paddle_model.bert.pooler.activation = paddle.nn.ReLU()
    result = selftest(torch_model, paddle_model, poor())
    assert not result.passed and not result.outcomes
    assert "the unbroken pair does not pass" in result.summary()


def steps_of_a_linear() -> SelfTest:
    """Return the test of one layer, trained under a clip that never acts."""
    clip = paddle.nn.ClipGradByGlobalNorm(1e4)
    rows = (np.random.default_rng(0).standard_normal((4, 3)).astype("float32"),)
    return selftest(
        torch.nn.Linear(3, 3),
        paddle.nn.Linear(3, 3),
        rows,
        torch_optimizer=lambda model: torch.optim.Adam(model.parameters(), lr=RATE),
        paddle_optimizer=lambda model: paddle.optimizer.Adam(
            paddle.optimizer.lr.StepDecay(RATE, 1),
            parameters=model.parameters(),
            grad_clip=clip,
        ),
        torch_scheduler=lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1),
        steps=2,
    )


def test_a_clip_that_never_acts_may_be_left_out_unseen():
    result = steps_of_a_linear()
    hidden = {one.kind: one.text for one in result.invisible}
    assert "stay below the clip" in hidden["gradients not clipped"]
    assert "gradients not clipped is invisible" in result.count_line
    assert "INVISIBLE" in result.summary()


def test_a_schedule_ahead_is_revealed():
    outcomes = {one.kind: one.revealed for one in steps_of_a_linear().outcomes}
    assert outcomes["schedule ahead by one step"]


def test_nothing_planted_is_no_pass():
    assert not SelfTest(Report(), []).passed


FILE = """
import numpy as np

def torch_model():
    import torch
    return torch.nn.Linear(3, 3)

def paddle_model():
    import paddle
    return paddle.nn.Linear(3, 3)

def inputs():
    return (np.random.default_rng(0).standard_normal((2, 3)).astype("float32"),)
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_says_what_is_invisible(tmp_path: Path, capsys, as_json):
    file = tmp_path / "mine.py"
    file.write_text(FILE)
    code = cli.main(["selftest", str(file), *(["--json"] if as_json else [])])
    shown = capsys.readouterr().out
    assert code == 1
    assert "no loss is given" in shown
    if as_json:
        assert json.loads(shown)["passed"] is False


def test_a_missing_file_is_an_error(tmp_path: Path, capsys):
    assert cli.main(["selftest", str(tmp_path / "none.py")]) == 2
    assert "missing" in capsys.readouterr().err
