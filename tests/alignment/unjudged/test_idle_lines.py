"""Lines of a model's own code that no run has reached."""

import sys
from inspect import getsourcelines

from reprod_align import align
from reprod_align.alignment.unjudged import watch_lines
from reprod_align.pair.sides import paddle_side, torch_side
from reprod_align.report import Report
from reprod_align.selftest import selftest
from tests.alignment.small import PaddleNet, TorchNet, X

import paddle
import torch


def double_if_long(x: torch.Tensor) -> torch.Tensor:
    """Take a branch that no batch takes."""
    if x.shape[-1] > 100:
        x = x * 2
        x = x + 1
    if x.shape[-1] > 200:
        text = "too long"
        raise ValueError(text)
    return x


class TorchLong(TorchNet):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(double_if_long(x))


class PaddleLong(PaddleNet):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if self.training:
            return super().forward(x)
        y = super().forward(x)
        return self.unreached(y) if False else y

    def unreached(self, x: paddle.Tensor) -> paddle.Tensor:
        y = x * 3
        return y

    def _not_named_in_forward(self) -> int:
        return 1


def find(report) -> list[str]:
    return [one.what for one in report.not_judged if one.kind == "lines"]


def test_lines_that_never_ran_are_named_on_each_side() -> None:
    report = align(TorchLong(), PaddleNet(), (X,))
    assert report.passed
    (text,) = find(report)
    start = getsourcelines(double_if_long)[1]
    assert text.startswith("PyTorch: 2 lines never ran: ")
    assert text.endswith(f"test_idle_lines.py:{start + 3}-{start + 4}")
    (text,) = find(align(TorchNet(), PaddleLong(), (X,)))
    start = getsourcelines(PaddleLong.unreached)[1]
    assert text.startswith("Paddle: 2 lines never ran: ")
    assert text.endswith(f"test_idle_lines.py:{start + 1}-{start + 2}")


def test_a_pair_whose_lines_all_run_is_told_nothing() -> None:
    assert align(TorchNet(), PaddleNet(), (X,)).not_judged == []


def test_functions_and_trace_functions_come_back() -> None:
    codes = double_if_long.__code__, PaddleLong.forward.__code__
    heard = []

    def hear(frame, event, argument):
        heard.append(frame.f_code.co_name)

    before = sys.gettrace()
    sys.settrace(hear)
    try:
        report = align(TorchLong(), PaddleLong(), (X,))
        assert sys.gettrace() is hear
    finally:
        sys.settrace(before)
    assert "double_if_long" in heard and len(find(report)) == 2
    assert codes == (double_if_long.__code__, PaddleLong.forward.__code__)
    assert codes[0] is double_if_long.__code__


def test_selftest_tells_too() -> None:
    result = selftest(TorchLong(), PaddleNet(), (X,))
    assert "not judged: PyTorch: 2 lines never ran" in result.summary()


def test_code_is_given_back_where_the_comparison_fails() -> None:
    code = double_if_long.__code__
    sides, report = (torch_side(TorchLong()), paddle_side(PaddleNet())), Report()
    try:
        with watch_lines(*sides):
            assert double_if_long.__code__ is not code
            raise KeyError
    except KeyError:
        pass
    assert double_if_long.__code__ is code
    with watch_lines(*sides) as note_idle:
        note_idle(report)
    assert all("never ran" in text for text in find(report)) and len(find(report)) == 2
