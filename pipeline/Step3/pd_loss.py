"""Step 3: the loss on the fake batch, and the losses a port gets wrong most often.

reads   fake_data/fake_data.npy, fake_label.npy     (4, 64) and (4,) int64
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/loss_SIDE.npy                    float32, and its float64 twin in strict/
pair    pt_loss.py and pd_loss.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.pd import SIDE
from pipeline.pd.model import criterion, load_bert
from pipeline.run import Run, start
from reprod_align import Recorder

import paddle
import paddle.nn.functional as F


def main(run: Run) -> None:
    """Record every loss, once in each precision."""
    fake = load_fake_batch(run)
    for dtype in run.dtypes:
        record = Recorder(run.output(f"loss_{SIDE}", dtype))
        model = load_bert(run, dtype)  # eval mode: no dropout
        with paddle.no_grad():
            logits = model(paddle.to_tensor(fake.input_ids))  # (B, num_labels)
        labels = paddle.to_tensor(fake.labels)  # (B,)
        one_ignored = labels.clone()
        one_ignored[-1] = settings.IGNORE_INDEX
        soft_labels = paddle.to_tensor(settings.SOFT_LABELS)
        weight = paddle.to_tensor(settings.CLASS_WEIGHTS)
        # cross_entropy(label_smoothing=0.1) computes with 0.1 in float32, which is off by 1e-8
        smoothing = settings.LABEL_SMOOTHING
        one_hot = F.one_hot(labels, settings.NUM_LABELS).astype(dtype)  # (B, num_labels)
        smoothed_labels = one_hot * (1 - smoothing) + smoothing / settings.NUM_LABELS
        # With a negative ignore_index, Paddle's mean divides by all positions, torch's by the counted
        counted = (one_ignored != settings.IGNORE_INDEX).sum().astype(dtype)

        record.add("loss", criterion(logits, labels))
        record.add("label_smoothing", F.cross_entropy(logits, smoothed_labels, soft_label=True))
        record.add("class_weights", F.cross_entropy(logits, labels, weight=weight))
        ignore = {"ignore_index": settings.IGNORE_INDEX, "reduction": "sum"}
        record.add("ignore_index", F.cross_entropy(logits, one_ignored, **ignore) / counted)
        record.add("soft_labels", F.cross_entropy(logits, soft_labels, soft_label=True))
        record.add("mean_squared_error", F.mse_loss(logits, soft_labels))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"loss_{SIDE}")
