"""Performance: the faster layers equal the plain ones, and what the scripts measure. No timing is judged."""

import json
from pathlib import Path
from types import SimpleNamespace

import pipeline  # noqa: F401  (quietens what follows)
from models import pd_bert, pt_bert
from pipeline.pd import fast_layers
from pipeline.pd.fast_layers import FastBertEncoder, FastLinear, contiguous_tensors, faster
from pipeline.timing import workload as perf
from pipeline.timing.compare import SpeedComparison, of_differences, of_ratios
from pipeline.timing.workload import PHASES, WARM_UP, Speed, Stopwatch, Workload, load_speed
from reprod_align import ReprodError, align
from tests.conftest import one_line_error, run_script
from tests.pipeline.test_native_layers import IDS, MASK, TINY

import numpy as np
import paddle
import paddle.nn.functional as F
import pytest
import torch
from paddle import nn

pytestmark = pytest.mark.usefixtures("float64_by_default")
SMALL = ("--steps", "2", "--batch-size", "4", "--length", "12")
BATCH = {"input_ids": IDS * MASK, "attention_mask": MASK}
WORK = Workload("tiny", 2, 4, 12)


def outputs_and_gradients(model: nn.Layer, train: bool) -> dict[str, np.ndarray]:
    """Return the logits, the loss and all gradients of one seeded step."""
    model.train() if train else model.eval()
    model.clear_gradients(set_to_zero=False)
    paddle.seed(7)  # the same dropout masks each time
    logits = model(**{name: paddle.to_tensor(array) for name, array in BATCH.items()})
    loss = F.cross_entropy(logits, paddle.to_tensor([0, 1, 1]))
    loss.backward()
    found = {"logits": logits, "loss": loss}
    found |= {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    return {name: tensor.numpy() for name, tensor in found.items()}


def worst(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> float:
    """Return the largest difference of two sets of arrays, relative to the largest number of each."""
    assert a.keys() == b.keys()
    return max(float(np.abs(a[name] - b[name]).max() / np.abs(a[name]).max()) for name in a)


# --- the faster layers -----------------------------------------------------------------------


@pytest.mark.parametrize("train", [False, True])
def test_faster_equals_plain(train: bool) -> None:
    model = pd_bert.BertForSequenceClassification(TINY)
    plain = outputs_and_gradients(model, train)
    undo = faster(model)
    with contiguous_tensors():
        fast = outputs_and_gradients(model, train)
    undo()
    assert np.array_equal(plain["logits"], fast["logits"])  # bit for bit
    assert worst(plain, fast) <= 1e-12
    assert len(plain) == 2 + len(list(model.parameters()))
    again = outputs_and_gradients(model, train)
    assert all(np.array_equal(plain[name], again[name]) for name in plain)


def test_align_finds_the_faster_model_faithful() -> None:
    theirs = pt_bert.BertForSequenceClassification(TINY)
    ours = pd_bert.BertForSequenceClassification(TINY)
    faster(ours)
    report = align(
        theirs,
        ours,
        BATCH,
        torch_loss=lambda logits: torch.nn.functional.cross_entropy(
            logits, torch.tensor([0, 1, 1])
        ),
        paddle_loss=lambda logits: F.cross_entropy(logits, paddle.to_tensor([0, 1, 1])),
        torch_optimizer=lambda model: torch.optim.AdamW(model.parameters(), 1e-3, eps=1e-6),
        paddle_optimizer=lambda model: paddle.optimizer.AdamW(
            1e-3, parameters=model.parameters(), epsilon=1e-6
        ),
    )
    assert report.passed, str(report)


def test_align_sees_a_fault_in_a_faster_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    def forward(self: FastLinear, input: paddle.Tensor) -> paddle.Tensor:
        return paddle.matmul(input, self.weight) + self.bias.detach()

    monkeypatch.setattr(FastLinear, "forward", forward)
    theirs = pt_bert.BertForSequenceClassification(TINY)
    ours = pd_bert.BertForSequenceClassification(TINY)
    faster(ours)
    report = align(theirs, ours, BATCH)
    assert not report.passed
    assert {finding.stage for finding in report.findings} == {"backward"}


def test_names_weights_and_hooks_stay() -> None:
    model = pd_bert.BertForSequenceClassification(TINY)
    seen: list[int] = []
    model.classifier.register_forward_post_hook(lambda *_: seen.append(1))
    names = [name for name, _ in model.named_sublayers()]
    parameters = [(name, id(each)) for name, each in model.named_parameters()]
    undo = faster(model)
    assert [name for name, _ in model.named_sublayers()] == names
    assert [(name, id(each)) for name, each in model.named_parameters()] == parameters
    assert type(model.classifier) is FastLinear
    assert type(model.bert.encoder) is FastBertEncoder
    outputs_and_gradients(model, train=True)
    assert seen == [1]
    undo()
    kinds = {type(layer) for layer in model.sublayers()}
    assert not kinds & {FastLinear, FastBertEncoder}


def test_layers_of_a_users_own_class_stay() -> None:
    class Doubled(nn.Linear):
        def forward(self, input: paddle.Tensor) -> paddle.Tensor:
            return 2 * super().forward(input)

    model = nn.Sequential(Doubled(3, 3), nn.Linear(3, 2))
    faster(model)
    assert [type(layer) for layer in model] == [Doubled, FastLinear]


@pytest.mark.parametrize("frozen", ["", "weight", "bias", "both", "input"])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5)])
def test_linear_of_any_shape_with_frozen_parts(frozen: str, shape: tuple[int, ...]) -> None:
    layer = nn.Linear(5, 3)
    layer.bias.set_value(paddle.to_tensor([0.1, -2.0, 3.0]))
    layer.weight.stop_gradient = frozen in ("weight", "both")
    layer.bias.stop_gradient = frozen in ("bias", "both")
    array = np.random.default_rng(1).normal(size=shape)
    found = []
    for change in (lambda layer: None, faster):
        change(layer)
        x = paddle.to_tensor(array, stop_gradient=frozen == "input")
        y = layer(x)
        y.square().sum().backward()
        gradients = [
            None if each.grad is None else each.grad.numpy() for each in (x, *layer.parameters())
        ]
        found.append([y.numpy(), *gradients])
        layer.clear_gradients(set_to_zero=False)
    for plain, fast in zip(*found, strict=True):
        assert (plain is None) == (fast is None)
        assert plain is None or np.allclose(plain, fast, rtol=1e-12, atol=1e-12)


def test_linear_without_bias_is_plain() -> None:
    layer, x = nn.Linear(3, 2, bias_attr=False), paddle.to_tensor([[1.0, -2.0, 0.5]])
    plain = layer(x).numpy()
    faster(layer)
    assert np.array_equal(layer(x).numpy(), plain)


def test_linear_is_plain_where_auto_cast_chooses_dtypes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paddle.amp, "is_autocast_enabled", lambda: True)
    monkeypatch.setattr(paddle, "matmul", lambda *_: pytest.fail("not as nn.Linear"))
    assert FastLinear(3, 2)(paddle.ones([4, 3])).shape == [4, 2]


def test_linear_of_no_rows() -> None:
    layer, x = FastLinear(5, 3), paddle.zeros([0, 5])
    x.stop_gradient = False
    layer(x).sum().backward()
    assert layer.bias.grad.tolist() == [0, 0, 0]


def test_linear_has_second_derivatives_too() -> None:
    layer, x = FastLinear(3, 2), paddle.to_tensor([[1.0, -2.0, 0.5]], stop_gradient=False)
    (slope,) = paddle.grad(layer(x).square().sum(), [x], create_graph=True)
    (curvature,) = paddle.grad(slope.sum(), [x])
    weight = layer.weight.numpy()
    assert np.allclose(curvature.numpy(), 2 * (weight @ weight.T).sum(0), rtol=1e-12)


def test_contiguous_tensors_is_undone_on_errors() -> None:
    flag = fast_layers._STRIDES
    with pytest.raises(ZeroDivisionError), contiguous_tensors():
        assert paddle.get_flags(flag) == {flag: False}
        raise ZeroDivisionError
    assert paddle.get_flags(flag) == {flag: True}


def test_a_view_from_before_is_refused_rather_than_misread() -> None:
    view = paddle.arange(6.0).reshape([2, 3]).T
    with contiguous_tensors(), pytest.raises(SystemError, match="contiguous"):
        paddle.exp(view)


# --- the stopwatch and the comparison --------------------------------------------------------


def speed(milliseconds: float, backward: float = 5.0, **changes: object) -> Speed:
    phases = {"data": 1.0, "forward": milliseconds, "backward": backward, "optimizer": 2.0}
    spread = {phase: [value, 3 * value, value] for phase, value in phases.items()}
    values = {"workload": Workload("tiny", 3, 4, 12), "device": "cpu", "fast": "", "threads": "1"}
    values |= {"peak_mb": 9.0, "milliseconds": spread}
    return Speed(**values | changes)


def test_a_speed_is_of_the_median_step() -> None:
    assert speed(2.0).sentences_per_second == pytest.approx(1000 * 4 / 10)
    assert speed(2.0).per_phase() == {"data": 1, "forward": 2, "backward": 5, "optimizer": 2}


def test_the_stopwatch_times_every_step_of_every_phase() -> None:
    watch = Stopwatch()
    for _ in watch.data(range(3)):
        for phase in PHASES[1:]:
            with watch.phase(phase):
                pass
    assert {len(values) for values in watch.milliseconds.values()} == {3}
    assert min(min(values) for values in watch.milliseconds.values()) >= 0


def test_the_comparison_names_the_phase_of_the_slower_side() -> None:
    fast, slow = speed(2.0), speed(4.0, backward=23.0)
    slower = SpeedComparison((fast, fast), (slow, slow))
    assert slower.ratio.value == pytest.approx(1 / 3)
    assert slower.deciding_phase == "backward"
    assert "backward makes the difference: paddle takes longer" in slower.text()
    faster_one = SpeedComparison((slow, slow), (fast, fast))
    assert faster_one.ratio.value == pytest.approx(3)
    assert "backward makes the difference: torch takes longer" in faster_one.text()
    json.dumps(slower.to_json(), allow_nan=False)


def test_intervals_cover_what_they_should() -> None:
    source, inside = np.random.default_rng(0), 0
    for _ in range(400):
        found = of_ratios(list(0.8 * np.exp(source.normal(0, 0.3, 5))))
        inside += found.low <= 0.8 <= found.high
    assert 0.92 <= inside / 400 <= 0.98
    assert of_differences([3.0, 3.0]).text() == "3.0 (3.0 to 3.0)"


@pytest.mark.parametrize(
    "other", [{"threads": "2"}, {"device": "gpu"}, {"workload": Workload("tiny", 3, 8, 12)}]
)
def test_unequal_work_is_not_compared(other: dict[str, object]) -> None:
    with pytest.raises(ReprodError, match="not the same work"):
        SpeedComparison((speed(2.0), speed(2.0)), (speed(2.0), speed(2.0, **other)))


def test_one_round_is_refused() -> None:
    with pytest.raises(ReprodError, match="two rounds"):
        SpeedComparison((speed(2.0),), (speed(2.0),))


# --- the scripts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def perf_home(aligned_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with weights, in which check_perf.py ran two rounds, PyTorch's side fast."""
    home = tmp_path_factory.mktemp("perf")
    for folder in ("weights", "classifier_weights"):
        (home / folder).symlink_to(aligned_home / folder)
    options = ("--rounds", "2", "--fast", "torch", "--at-least", "1e9", *SMALL)
    finished = run_script("pipeline/Step5/check_perf.py", home, *options, warm_children=True)
    assert finished.returncode == 1, (
        finished.stderr
    )  # no machine is a thousand million times faster
    (home / "printed.txt").write_text(finished.stdout)
    return home


def test_check_perf_prints_and_writes_the_comparison(perf_home: Path) -> None:
    strict = perf_home / "log_reprod" / "strict"
    printed = (perf_home / "printed.txt").read_text()
    assert printed == (strict / "perf_diff.log").read_text()
    assert "torch, fused" in printed and "paddle, " not in printed
    assert "2 rounds of 2 steps, batch 4 x 12, tiny, 1 threads" in printed
    assert "makes the difference" in printed
    found = json.loads((strict / "perf_diff.json").read_text())
    assert found["ratio"]["low"] <= found["ratio"]["value"] <= found["ratio"]["high"]
    assert len(found["torch"]) == len(found["paddle"]) == 2


@pytest.mark.parametrize("side", ["torch", "paddle"])
def test_every_phase_of_every_step_is_written(perf_home: Path, side: str) -> None:
    content = json.loads((perf_home / f"log_reprod/strict/perf_{side}.json").read_text())
    assert content["fast"] == {"torch": "fused", "paddle": ""}[side]
    assert content["threads"] == "1" and content["peak_mb"] > 50
    assert list(content["milliseconds"]) == list(PHASES)
    for values in content["milliseconds"].values():
        assert len(values) == WORK.steps and min(values) > 0


def test_the_fast_paddle_side_runs(perf_home: Path, tmp_path: Path) -> None:
    for folder in ("weights", "classifier_weights"):
        (tmp_path / folder).symlink_to(perf_home / folder)
    finished = run_script("pipeline/Step5/pd_perf.py", tmp_path, "--fast", "layers", *SMALL)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.startswith("paddle: ")
    assert (
        json.loads((tmp_path / "log_reprod/strict/perf_paddle.json").read_text())["fast"]
        == "layers"
    )


def test_a_side_that_fails_is_named_in_one_line(perf_home: Path, tmp_path: Path) -> None:
    (tmp_path / "weights").symlink_to(perf_home / "weights")  # no classifier's weights
    check = "pipeline/Step5/check_perf.py"
    message = one_line_error(run_script(check, tmp_path, *SMALL, warm_children=True))
    assert "pipeline/Step5/pt_perf.py ended with 2" in message
    assert "generate_classifier_weights.py" in message
    assert not (tmp_path / "log_reprod").exists()


def test_one_round_is_refused_on_the_command_line(tmp_path: Path) -> None:
    finished = run_script("pipeline/Step5/check_perf.py", tmp_path, "--rounds", "1")
    assert finished.returncode == 2 and "not a whole number above 1" in finished.stderr


class FakeRun:
    """As much of a Run as reading and making batches needs."""

    def __init__(self, home: Path, **options: object) -> None:
        self.home, self.profile = home, SimpleNamespace(name="tiny")
        values = {"steps": 2, "batch_size": 4, "length": 12, "device": "cpu", "fast": ""}
        self.options = SimpleNamespace(**values | options)

    def output(self, name: str) -> Path:
        return self.home / f"{name}.npy"


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    run, watch = FakeRun(tmp_path), Stopwatch()
    for phase in PHASES:
        watch.milliseconds[phase] = [9.0] * WARM_UP + [1.0, 2.0]
    saved = perf.save_speed(run, "perf_torch", watch, 0)
    assert saved == load_speed(run, "perf_torch")
    assert saved.milliseconds["forward"] == [1.0, 2.0]  # the first steps are not counted


@pytest.mark.parametrize("damage", ["missing", "{", "{}", "lacks a step"])
def test_a_damaged_result_is_one_error(damage: str, tmp_path: Path) -> None:
    if damage == "lacks a step":
        perf.save_speed(FakeRun(tmp_path), "perf_torch", Stopwatch(), 0)
    elif damage != "missing":
        (tmp_path / "perf_torch.json").write_text(damage)
    with pytest.raises(ReprodError, match="missing or damaged"):
        load_speed(FakeRun(tmp_path), "perf_torch")


def test_examples_are_seeded_whole_sentences_that_the_model_takes(tmp_path: Path) -> None:
    workload = perf.read_workload(FakeRun(tmp_path))
    found = perf.draw_examples(workload, TINY)
    assert found == perf.draw_examples(workload, TINY)
    assert len(found) == (WARM_UP + 2) * 4
    assert {len(each["input_ids"]) for each in found} == {12}
    assert all(min(each["input_ids"]) > 0 for each in found)
    with pytest.raises(ReprodError, match="at most 20 tokens"):
        perf.draw_examples(perf.read_workload(FakeRun(tmp_path, length=21)), TINY)
