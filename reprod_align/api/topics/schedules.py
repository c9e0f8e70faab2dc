"""Learning-rate schedules."""

from typing import Any

from reprod_align.api.entry import Entry, paddle, paddlenlp, torch, transformers

import numpy as np

CHINESE = "学习率策略"

_WARMUP, _TOTAL = 3, 12


def _torch_rates(make: Any, steps: int = 12) -> list[float]:
    """Return the rate of each step; make: from an optimizer with lr 0.1."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    schedule, rates = make(optimizer), []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


def _paddle_rates(schedule: Any, steps: int = 12) -> list[float]:
    """Return the rate of each step."""
    rates = []
    for _ in range(steps):
        rates.append(float(schedule.last_lr))
        schedule.step()
    return rates


class StepDecay(Entry):
    """StepLR is StepDecay: it takes the learning rate, not the optimizer; step_size and gamma are the same."""

    chinese = "StepLR 对应 StepDecay：传入学习率而不是优化器；step_size、gamma 含义相同。"
    apis = "torch.optim.lr_scheduler.StepLR", "paddle.optimizer.lr.StepDecay"
    sources = ("quick start 5.3 API table", "guide 4.0")
    keywords = "StepLR gamma step_size"

    def torch_side(self) -> Any:
        return _torch_rates(lambda held: torch.optim.lr_scheduler.StepLR(held, 4, gamma=0.5))

    def paddle_side(self) -> Any:
        return _paddle_rates(paddle.optimizer.lr.StepDecay(0.1, step_size=4, gamma=0.5))


class ScheduleOrder(Entry):
    """PyTorch's schedule is made of the optimizer, Paddle's is made first and given as learning_rate."""

    chinese = "PyTorch 先建优化器再建学习率策略；Paddle 先建策略，再作为 learning_rate 传给优化器。"
    apis = "torch.optim.lr_scheduler", "paddle.optimizer.lr"
    sources = ("quick start 5.4", "guide 3.6")
    keywords = "scheduler optimizer order step get_lr"

    def torch_side(self) -> Any:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
        optimizer.step()
        schedule.step()
        return optimizer.param_groups[0]["lr"]

    def paddle_side(self) -> Any:
        schedule = paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)
        held = [paddle.create_parameter([1], "float64")]
        optimizer = paddle.optimizer.SGD(learning_rate=schedule, parameters=held)
        optimizer.step()
        schedule.step()
        return float(optimizer.get_lr())

    def plain(self) -> Any:
        schedule = paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)
        held = [paddle.create_parameter([1], "float64")]
        optimizer = paddle.optimizer.SGD(learning_rate=schedule, parameters=held)
        optimizer.step()  # the schedule stays where it is
        return float(optimizer.get_lr())

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found, 2 * expected)


class ScheduleGetLr(Entry):
    """Read last_lr (or the optimizer's get_lr): a schedule's own get_lr may compute the next rate from it."""

    chinese = "应读 last_lr（或优化器的 get_lr）：策略自己的 get_lr 可能由当前值推算出别的值。"
    apis = "lr_scheduler.get_last_lr", "paddle.optimizer.lr.LRScheduler.last_lr"
    sources = ("quick start 5.4", "guide 4.6")
    keywords = "get_lr get_last_lr CosineAnnealingDecay recursive"

    def torch_side(self) -> Any:
        make = torch.optim.lr_scheduler.CosineAnnealingLR
        return _torch_rates(lambda held: make(held, 5, eta_min=0.01))[1]

    def paddle_side(self) -> Any:
        schedule = paddle.optimizer.lr.CosineAnnealingDecay(0.1, 5, eta_min=0.01)
        schedule.step()
        return float(schedule.last_lr)

    def plain(self) -> Any:
        schedule = paddle.optimizer.lr.CosineAnnealingDecay(0.1, 5, eta_min=0.01)
        schedule.step()
        return float(schedule.get_lr())


class SetLr(Entry):
    """param_groups[0]["lr"] = x is set_lr(x), which is refused while a schedule is in charge."""

    chinese = 'param_groups[0]["lr"] = x 对应 set_lr(x)；使用学习率策略时 set_lr 会报错。'
    apis = 'optimizer.param_groups[0]["lr"]', "paddle.optimizer.Optimizer.set_lr"
    sources = ("guide 4.6",)
    keywords = "set_lr get_lr change learning rate"

    def torch_side(self) -> Any:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        optimizer.param_groups[0]["lr"] = 0.2
        return optimizer.param_groups[0]["lr"]

    def paddle_side(self) -> Any:
        held = [paddle.create_parameter([1], "float64")]
        optimizer = paddle.optimizer.SGD(0.1, parameters=held)
        optimizer.set_lr(0.2)
        return float(optimizer.get_lr())

    def plain(self) -> Any:
        held = [paddle.create_parameter([1], "float64")]
        schedule = paddle.optimizer.lr.ExponentialDecay(0.1, 0.5)
        paddle.optimizer.SGD(schedule, parameters=held).set_lr(0.2)

    raises = "RuntimeError: LRScheduler"


class MultiStep(Entry):
    """MultiStepLR is MultiStepDecay, with the same milestones and gamma."""

    chinese = "MultiStepLR 对应 MultiStepDecay，milestones、gamma 相同。"
    apis = "torch.optim.lr_scheduler.MultiStepLR", "paddle.optimizer.lr.MultiStepDecay"

    def torch_side(self) -> Any:
        return _torch_rates(lambda held: torch.optim.lr_scheduler.MultiStepLR(held, [2, 5], 0.5))

    def paddle_side(self) -> Any:
        return _paddle_rates(paddle.optimizer.lr.MultiStepDecay(0.1, [2, 5], gamma=0.5))


class CosineAnnealing(Entry):
    """CosineAnnealingLR is CosineAnnealingDecay; both rise again after T_max."""

    chinese = "CosineAnnealingLR 对应 CosineAnnealingDecay；超过 T_max 后两边都会回升。"
    apis = "torch.optim.lr_scheduler.CosineAnnealingLR", "paddle.optimizer.lr.CosineAnnealingDecay"
    keywords = "cosine T_max eta_min"

    def torch_side(self) -> Any:
        make = torch.optim.lr_scheduler.CosineAnnealingLR
        return _torch_rates(lambda held: make(held, 5, eta_min=0.01))

    def paddle_side(self) -> Any:
        return _paddle_rates(paddle.optimizer.lr.CosineAnnealingDecay(0.1, 5, eta_min=0.01))


class LambdaSchedule(Entry):
    """LambdaLR is LambdaDecay: the function returns a factor on the first rate, on both sides."""

    chinese = "LambdaLR 对应 LambdaDecay：函数返回初始学习率的倍数，两边相同。"
    apis = "torch.optim.lr_scheduler.LambdaLR", "paddle.optimizer.lr.LambdaDecay"
    keywords = "Informer type1 warmup custom"

    def torch_side(self) -> Any:
        make = torch.optim.lr_scheduler.LambdaLR
        return _torch_rates(lambda held: make(held, lambda epoch: 0.5**epoch))

    def paddle_side(self) -> Any:
        return _paddle_rates(paddle.optimizer.lr.LambdaDecay(0.1, lambda epoch: 0.5**epoch))


class ReduceOnPlateau(Entry):
    """ReduceLROnPlateau is ReduceOnPlateau; eps is epsilon; step() takes the metric on both sides."""

    chinese = "ReduceLROnPlateau 对应 ReduceOnPlateau；eps 叫 epsilon；step() 两边都要传指标。"
    apis = "torch.optim.lr_scheduler.ReduceLROnPlateau", "paddle.optimizer.lr.ReduceOnPlateau"
    keywords = "patience factor threshold"

    def torch_side(self) -> Any:
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        schedule, rates = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1), []
        for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.0):
            schedule.step(loss)
            rates.append(optimizer.param_groups[0]["lr"])
        return rates

    def paddle_side(self) -> Any:
        schedule, rates = paddle.optimizer.lr.ReduceOnPlateau(0.1, patience=1), []
        for loss in (3.0, 2.0, 2.0, 2.0, 2.0, 1.0):
            schedule.step(paddle.to_tensor(loss))
            rates.append(schedule.last_lr)
        return rates


class OneCycle(Entry):
    """max_lr is max_learning_rate, div_factor divide_factor; the end is a rate, not a final_div_factor."""

    chinese = "max_lr 叫 max_learning_rate，div_factor 叫 divide_factor；终点直接给学习率而不是 final_div_factor。"
    apis = "torch.optim.lr_scheduler.OneCycleLR", "paddle.optimizer.lr.OneCycleLR"
    keywords = "one cycle superconvergence phase_pct pct_start"

    def torch_side(self) -> Any:
        make = torch.optim.lr_scheduler.OneCycleLR
        return _torch_rates(lambda held: make(held, 0.1, total_steps=13, final_div_factor=100.0))

    def paddle_side(self) -> Any:
        make, end = paddle.optimizer.lr.OneCycleLR, 0.1 / 25 / 100
        return _paddle_rates(make(0.1, 13, divide_factor=25.0, end_learning_rate=end))


class LinearWarmup(Entry):
    """transformers' linear schedule is paddlenlp's LinearDecayWithWarmup, with total_steps and warmup."""

    chinese = (
        "transformers 的 linear 策略对应 paddlenlp 的 LinearDecayWithWarmup(total_steps, warmup)。"
    )
    apis = (
        "transformers.get_linear_schedule_with_warmup",
        "paddlenlp.transformers.LinearDecayWithWarmup",
    )
    sources = ("quick start 5.4", "step 4: schedules", "guide 4.6")
    keywords = "warmup linear start"

    def torch_side(self) -> Any:
        make = transformers.get_linear_schedule_with_warmup
        return _torch_rates(lambda held: make(held, _WARMUP, _TOTAL))

    def paddle_side(self) -> Any:
        make = paddlenlp.transformers.LinearDecayWithWarmup
        return _paddle_rates(make(0.1, total_steps=_TOTAL, warmup=_WARMUP))


class CosineWarmup(Entry):
    """paddlenlp's cosine goes down and up by default (num_cycles 1): with_hard_restarts=True equals transformers'."""

    chinese = "paddlenlp 的余弦策略默认降到底又回升（num_cycles 为 1）：with_hard_restarts=True 才与 transformers 相同。"
    apis = (
        "transformers.get_cosine_schedule_with_warmup",
        "paddlenlp.transformers.CosineDecayWithWarmup",
    )
    sources = ("quick start 5.4", "step 4: schedules")
    keywords = "cosine warmup num_cycles 9.36e-06 hard restarts"

    def torch_side(self) -> Any:
        make = transformers.get_cosine_schedule_with_warmup
        return _torch_rates(lambda held: make(held, _WARMUP, _TOTAL))

    def paddle_side(self) -> Any:
        make = paddlenlp.transformers.CosineDecayWithWarmup
        return _paddle_rates(make(0.1, _TOTAL, _WARMUP, with_hard_restarts=True, num_cycles=1.0))

    def plain(self) -> Any:
        make = paddlenlp.transformers.CosineDecayWithWarmup
        return _paddle_rates(make(0.1, _TOTAL, _WARMUP))

    def as_described(self, expected: Any, found: Any) -> bool:
        return np.allclose(found[:4], expected[:4]) and bool(found[-1] > expected[-1])


class PolynomialWarmup(Entry):
    """transformers' polynomial ends at 1e-7 and has power 1 by default; so does paddlenlp's PolyDecayWithWarmup."""

    chinese = "多项式策略默认都以 power 1 降到 1e-7：对应 paddlenlp 的 PolyDecayWithWarmup。"
    apis = (
        "transformers.get_polynomial_decay_schedule_with_warmup",
        "paddlenlp.transformers.PolyDecayWithWarmup",
    )
    sources = ("quick start 5.4", "step 4: schedules")
    keywords = "polynomial lr_end power warmup"

    def torch_side(self) -> Any:
        make = transformers.get_polynomial_decay_schedule_with_warmup
        return _torch_rates(lambda held: make(held, _WARMUP, _TOTAL))

    def paddle_side(self) -> Any:
        make = paddlenlp.transformers.PolyDecayWithWarmup
        return _paddle_rates(make(0.1, total_steps=_TOTAL, warmup=_WARMUP))
