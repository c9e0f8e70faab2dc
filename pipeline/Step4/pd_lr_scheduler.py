"""Step 4: the learning rate at every step, under four schedules.

writes  log_reprod/strict/lr_SIDE.npy       the learning rates of each schedule, (1024,) float64
pair    pt_lr_scheduler.py and pd_lr_scheduler.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.pd import SIDE
from pipeline.run import Run, start
from reprod_align import Recorder

from paddle.optimizer.lr import LRScheduler, StepDecay
from paddlenlp.transformers import CosineDecayWithWarmup, LinearDecayWithWarmup, PolyDecayWithWarmup

WARMUP = {
    "warmup": settings.SCHEDULE_WARMUP,
    "total_steps": settings.SCHEDULE_STEPS,
}
# transformers' "cosine" is half a wave, which PaddleNLP reaches only through hard restarts: its plain
# cosine takes whole waves alone (num_cycles=1 by default, 0.5 is refused). See this step's README.
HALF_WAVE = {"with_hard_restarts": True, "num_cycles": 1.0}


def build_schedules() -> dict[str, LRScheduler]:
    """Return the schedules: Paddle builds them before the optimizer, which takes one."""
    lr = settings.LEARNING_RATE
    return {
        "linear": LinearDecayWithWarmup(lr, **WARMUP),
        "cosine": CosineDecayWithWarmup(lr, **WARMUP, **HALF_WAVE),
        "polynomial": PolyDecayWithWarmup(lr, **WARMUP),
        "step": StepDecay(lr, settings.STEP_SIZE, settings.GAMMA),
    }


def main(run: Run) -> None:
    """Step every schedule through the whole training."""
    record = Recorder(run.output(f"lr_{SIDE}"))
    for name, schedule in build_schedules().items():
        rates = []
        for _ in range(settings.SCHEDULE_STEPS):
            rates.append(schedule.get_lr())
            schedule.step()
        record.add(name, rates)
    record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"lr_{SIDE}")
