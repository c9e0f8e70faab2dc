"""Step 4: the learning rate at every step, under four schedules.

writes  log_reprod/strict/lr_SIDE.npy       the learning rates of each schedule, (1024,) float64
pair    pt_lr_scheduler.py and pd_lr_scheduler.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.pt import SIDE
from pipeline.run import Run, start
from reprod_align import Recorder

import torch
from torch.optim.lr_scheduler import LRScheduler, StepLR
from transformers import get_scheduler

WARMUP = {
    "num_warmup_steps": settings.SCHEDULE_WARMUP,
    "num_training_steps": settings.SCHEDULE_STEPS,
}


def build_schedules() -> dict[str, LRScheduler]:
    """Return the schedules, each over an optimizer of its own: torch builds the optimizer first."""
    sgd = [
        torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=settings.LEARNING_RATE)
        for _ in range(4)
    ]
    return {
        "linear": get_scheduler("linear", sgd[0], **WARMUP),
        "cosine": get_scheduler("cosine", sgd[1], **WARMUP),
        "polynomial": get_scheduler("polynomial", sgd[2], **WARMUP),
        "step": StepLR(sgd[3], settings.STEP_SIZE, settings.GAMMA),
    }


def main(run: Run) -> None:
    """Step every schedule through the whole training."""
    record = Recorder(run.output(f"lr_{SIDE}"))
    for name, schedule in build_schedules().items():
        rates = []
        for _ in range(settings.SCHEDULE_STEPS):
            rates.append(schedule.get_last_lr()[0])
            schedule.optimizer.step()
            schedule.step()
        record.add(name, rates)
    record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"lr_{SIDE}")
