"""Faults in what layers compute and hold: each changes what it should, and has a place or says why not."""

from typing import Any

from reprod_align.selftest import FAULTS, layers
from tests.selftest.observed import IMAGES, X, changes_output, gradients, observed, tell_why_not

import numpy as np
import paddle
import pytest
from paddle import nn

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track global mean")


@pytest.mark.parametrize(("find", "layer", "inputs", "kind"), [
    (layers.change_epsilon, nn.LayerNorm(4), X, "norm epsilon 1e-05 -> 1e-12"),
    (FAULTS["convolution dilated"], nn.Conv2D(3, 2, 3, padding=1), IMAGES, ""),
    (FAULTS["convolution padding"], nn.Conv2D(3, 2, 3, padding=1), IMAGES,
     "convolution padded on the wrong side"),
    (FAULTS["convolution stride"], nn.Conv2D(3, 2, 3, stride=2), IMAGES, "convolution stride 1"),
])  # fmt: skip
def test_a_setting_is_changed(find: Any, layer: Any, inputs: np.ndarray, kind: str) -> None:
    with observed(nn.Sequential(layer), inputs) as view:
        fault = find(view)
        assert (fault.module, fault.kind) == ("0", kind)
        assert changes_output(view, fault)


@pytest.mark.parametrize(("find", "reason"), [
    (layers.change_epsilon, "no layer with an epsilon"),
    (FAULTS["convolution dilated"], "no convolution of an odd size above 1 with padding"),
    (FAULTS["convolution padding"], "no convolution with padding"),
    (FAULTS["convolution stride"], "no convolution with a stride above 1"),
    (layers.forget_statistics, "no batch norm"),
    (FAULTS["batch norm's momentum not inverted"], "no batch norm"),
])  # fmt: skip
def test_a_model_without_a_place_for_it(find: Any, reason: str) -> None:
    with observed(nn.Sequential(nn.Conv2D(3, 2, 1)), IMAGES) as view:
        assert tell_why_not(find, view) == reason


def test_running_statistics() -> None:
    norm = nn.BatchNorm2D(3)
    with observed(nn.Sequential(norm), IMAGES) as view:
        fault = layers.forget_statistics(view)
        assert "give trained weights" in fault.hint  # a new norm has the statistics 0 and 1
        norm._mean.set_value(norm._mean + 1)
        fault = layers.forget_statistics(view)
        assert fault.hint == ""
        assert changes_output(view, fault)


def test_the_momentum_comes_back() -> None:
    norm = nn.BatchNorm2D(3, momentum=0.75)
    with observed(nn.Sequential(norm), IMAGES) as view:
        fault = FAULTS["batch norm's momentum not inverted"](view)
        assert fault.plant is not None
        with fault.plant(view.side):
            assert norm._momentum == 0.25
        assert norm._momentum == 0.75


@pytest.mark.parametrize(("find", "layer", "inputs", "kind"), [
    (FAULTS["gelu: erf <-> tanh"], nn.GELU(), X, ""),
    (layers.swap_relu_gelu, nn.GELU(), X, "gelu -> relu"),
    (layers.swap_relu_gelu, nn.ReLU(), X, "relu -> gelu"),
    (layers.move_softmax_axis, nn.Softmax(), X, ""),
    (FAULTS["average pool: exclusive flag"], nn.AvgPool2D(3, 1, padding=1), IMAGES, ""),
    (layers.swap_pool, nn.MaxPool2D(2), IMAGES, "max_pool2d -> avg_pool2d"),
])  # fmt: skip
def test_a_function_is_changed(find: Any, layer: Any, inputs: np.ndarray, kind: str) -> None:
    with observed(nn.Sequential(layer), inputs) as view:
        fault = find(view)
        assert (fault.module, fault.kind) == ("0", kind)
        assert changes_output(view, fault)


@pytest.mark.parametrize(
    "find", [FAULTS["dropout rate halved"], FAULTS["dropout left out"], layers.stick_in_eval]
)
def test_a_dropout_is_changed_in_training_alone(find: Any) -> None:
    with observed(nn.Sequential(nn.Dropout(0.5)), np.ones((40, 40))) as view:
        assert changes_output(view, find(view), training=True)
        assert not changes_output(view, find(view))


@pytest.mark.parametrize(
    "find", [FAULTS["dropout rate halved"], FAULTS["dropout left out"], layers.stick_in_eval]
)
@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.SimpleRNN])
def test_the_dropout_inside_a_recurrent_layer_is_changed(find: Any, kind: Any) -> None:
    class Last(nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = kind(4, 8, num_layers=2, dropout=0.5)

        def forward(self, x: Any) -> Any:
            return self.rnn(x)[0]

    with observed(Last(), np.ones((4, 6, 4))) as view:
        fault = find(view)
        assert fault.module == "rnn"
        assert changes_output(view, fault, training=True)
        assert not changes_output(view, fault)


@pytest.mark.parametrize(("find", "reason"), [
    (FAULTS["gelu: erf <-> tanh"], "no gelu"),
    (layers.swap_relu_gelu, "neither gelu nor relu"),
    (layers.move_softmax_axis, "no softmax"),
    (FAULTS["average pool: exclusive flag"], "no average pool with padding"),
    (layers.swap_pool, "no pool"),
    (FAULTS["dropout rate halved"], "no dropout with p > 0"),
    (FAULTS["dropout left out"], "no dropout with p > 0"),
    (layers.stick_in_eval, "no layer that differs between train and eval mode"),
])  # fmt: skip
def test_a_model_without_such_a_call(find: Any, reason: str) -> None:
    with observed(nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.0)), X) as view:
        assert tell_why_not(find, view) == reason


def test_a_softmax_of_one_number_has_a_hint() -> None:
    with observed(nn.Sequential(nn.Softmax()), np.ones((1, 1))) as view:
        fault = layers.move_softmax_axis(view)
        assert "give longer sequences" in fault.hint
        assert not changes_output(view, fault)


def two_linears() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


@pytest.mark.parametrize(("find", "model", "inputs", "module"), [
    (FAULTS["square Linear untransposed"], two_linears(), X, "2"),
    (FAULTS["Linear's weight off by 1e-6"], two_linears(), X, "2"),
    (layers.drop_bias, two_linears(), X, "2"),
    (layers.exchange_gamma_beta, nn.Sequential(nn.LayerNorm(4)), X, "0"),
    (layers.shift_rows, nn.Sequential(nn.Embedding(5, 4)), np.array([[0, 1]]), "0"),
])  # fmt: skip
def test_a_weight_is_changed(find: Any, model: Any, inputs: np.ndarray, module: str) -> None:
    with observed(model, inputs) as view:
        fault = find(view)
        assert (fault.module, fault.hint) == (module, "")
        assert changes_output(view, fault)


@pytest.mark.parametrize(("find", "reason"), [
    (layers.exchange_linears, "no two Linear layers of one shape beside each other"),
    (FAULTS["square Linear untransposed"], "no square Linear"),
    (layers.drop_bias, "no layer with a bias"),
    (layers.exchange_gamma_beta, "no norm with both weight and bias"),
    (layers.shift_rows, "no embedding"),
])  # fmt: skip
def test_a_model_without_such_a_weight(find: Any, reason: str) -> None:
    with observed(nn.Sequential(nn.Linear(4, 2, bias_attr=False)), X) as view:
        assert tell_why_not(find, view) == reason


def test_two_layers_weights_are_exchanged() -> None:
    with observed(two_linears(), X) as view:
        fault = layers.exchange_linears(view)
        assert fault.module == "0 and 2"
        assert changes_output(view, fault)
        first, _, second = view.side.model
        second.weight.set_value(first.weight)
        second.bias.set_value(first.bias)
        fault = layers.exchange_linears(view)
        assert fault.hint == "the two hold the same values"
        assert not changes_output(view, fault)


def test_a_bias_of_zeros_has_a_hint() -> None:
    model = nn.Sequential(nn.Linear(4, 2))
    with observed(model, X) as view:
        model[0].bias.set_value(model[0].bias * 0)
        fault = layers.drop_bias(view)
        assert "every bias of the model is 0" in fault.hint
        assert not changes_output(view, fault)


def test_gradients_that_do_not_arrive() -> None:
    with observed(two_linears(), X) as view:
        frozen = layers.freeze_parameter(view)
        assert not changes_output(view, frozen)
        found = gradients(view, frozen)
        assert [name for name, arrives in found.items() if not arrives] == [frozen.module]
        cut = layers.detach_output(view)
        assert cut.module == "1"
        found = gradients(view, cut)
        assert [name for name, arrives in found.items() if not arrives] == ["0.weight", "0.bias"]


def test_a_parameter_becomes_a_buffer() -> None:
    model = two_linears()
    names = [name for name, _ in model.named_parameters()]
    with observed(model, X) as view:
        fault = layers.make_buffer(view)
        assert fault.module == "2.weight" and not changes_output(view, fault)
        assert gradients(view, fault) == dict.fromkeys(set(names) - {"2.weight"}, True)
        with fault.plant(view.side):
            assert [name for name, _ in model.named_buffers()] == ["2.weight"]
            assert list(model.state_dict()) and "2.weight" in model.state_dict()
    assert [name for name, _ in model.named_parameters()] == names
    assert not list(model.named_buffers()) and not model[2].weight.stop_gradient


@pytest.mark.parametrize("factor", [1e4, 1e-4])
def test_a_gradient_is_changed_by_its_size(factor: float) -> None:
    model = two_linears()

    def slope(scale: float) -> np.ndarray:
        (model(paddle.to_tensor(X)) * scale).sum().backward()
        found = model[0].weight.grad.numpy() / scale
        model.clear_gradients()
        return found

    def loss(output: Any) -> Any:
        return factor * output.sum()

    with observed(model, X, loss=loss) as view:
        fault = layers.change_by_size(view)
        assert (fault.module, fault.hint) == ("1", "") and not changes_output(view, fault)
        expected = slope(1.0)
        with fault.plant(view.side):
            np.testing.assert_allclose(slope(1.0), expected)
            np.testing.assert_allclose(slope(factor), expected / 2)
        np.testing.assert_allclose(slope(factor), expected)


def test_without_a_loss_no_gradient_is_changed_by_its_size() -> None:
    with observed(two_linears(), X) as view:
        assert layers.change_by_size(view) == []
