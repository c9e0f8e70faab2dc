"""Step 4: ten AdamW iterations on the fake batch.

reads   fake_data/fake_data.npy, fake_label.npy     (4, 64) and (4,) int64
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/bp_align_SIDE.npy                loss and learning rate of each iteration, float32
        log_reprod/strict/bp_align_SIDE.npy         the same in float64, and every parameter's gradient
                                                    and updated value (large ones as a sketch)
pair    pt_bp.py and pd_bp.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.pd import SIDE
from pipeline.pd.model import criterion, load_bert
from pipeline.pd.optimizer import build_optimizer
from pipeline.run import Run, start
from pipeline.settings import STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.paddle import gradients, parameters
from reprod_align.traces.sketch import sketch_backwards

import paddle
from tqdm import trange


def main(run: Run) -> None:
    """Train once in each precision."""
    for dtype in run.dtypes:
        train(run, dtype)


def train(run: Run, dtype: str) -> None:
    """Train in eval mode, where nothing is random; record in the order in which things are computed."""
    record = Recorder(run.output(f"bp_align_{SIDE}", dtype))
    model = load_bert(run, dtype)
    optimizer, schedule = build_optimizer(model, settings.LEARNING_RATE, settings.BP_ITERATIONS)
    fake = load_fake_batch(run)
    input_ids = paddle.to_tensor(fake.input_ids)  # (B, L)
    labels = paddle.to_tensor(fake.labels)  # (B,)
    for iteration in trange(settings.BP_ITERATIONS, desc=f"{SIDE} {dtype}", disable=None):
        loss = criterion(model(input_ids), labels)
        loss.backward()
        record.add(f"loss_{iteration}", loss)
        record.add(f"lr_{iteration}", optimizer.get_lr())
        if dtype == STRICT_DTYPE:
            record.add_all(sketch_backwards(f"gradient_{iteration}", gradients(model)))
        optimizer.step()
        schedule.step()
        optimizer.clear_grad()
        if dtype == STRICT_DTYPE:
            record.add_all(sketch_backwards(f"parameter_{iteration}", parameters(model)))
    record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"bp_align_{SIDE}")
