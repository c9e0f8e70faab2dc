"""One pass of both sides compared."""

from reprod_align.alignment.comparing import compare_gradients, compare_pass, judge_all_gradients
from tests.alignment.small import PaddleNet, TorchNet, at_work


def test_a_faithful_port_agrees_in_outputs_and_gradients() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
    assert done.outputs_ok and done.gradients_ok and done.mode == "eval"
    assert len(done.gradients) == 4 and done.gradient_noise is None
    assert done.outputs_noise < 1e-12


def test_a_wrong_factor_shows_in_outputs_and_gradients() -> None:
    for factor in (1.5, 1 + 1e-7):
        with at_work(TorchNet(), PaddleNet(lambda x, by=factor: by * x)) as (runner, _):
            done = compare_pass(runner, runner.expected, training=False)
            assert not done.outputs_ok and not done.gradients_ok
            assert done.gradient_noise is None  # the outputs tell that more than noise differs
            assert judge_all_gradients(runner.pairing, done).gradient_noise is not None


def test_noise_is_measured_where_gradients_alone_differ_as_little_as_it_can() -> None:
    for share in (0.5, 1e-7):
        detour = lambda x, by=share: x + by * (x - x.detach())  # noqa: E731
        with at_work(TorchNet(), PaddleNet(detour)) as (runner, _):
            done = compare_pass(runner, runner.expected, training=False)
        assert done.outputs_ok and not done.gradients_ok
        assert (done.gradient_noise is not None) is (share < 0.1)


def test_gradients_that_agree_are_not_kept() -> None:
    with at_work(TorchNet(), PaddleNet()) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
    assert done.gradients_ok and not done.natural.gradients


def test_a_gradient_that_never_arrives_is_zero() -> None:
    with at_work(TorchNet(), PaddleNet(lambda x: x.detach())) as (runner, _):
        done = compare_pass(runner, runner.expected, training=False)
        wrong = {
            name
            for name, _, found in compare_gradients(runner.pairing, done, done.natural)
            if not found.ok
        }
    assert done.outputs_ok and wrong == {"first.weight", "first.bias"}
