"""Step 3: the loss on the fake batch, and the losses a port gets wrong most often.

reads   fake_data/fake_data.npy, fake_label.npy     (4, 64) and (4,) int64
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/loss_SIDE.npy                    float32, and its float64 twin in strict/
pair    pt_loss.py and pd_loss.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.pt import SIDE
from pipeline.pt.model import criterion, load_bert
from pipeline.run import Run, start
from reprod_align import Recorder

import torch
import torch.nn.functional as F


def main(run: Run) -> None:
    """Record every loss, once in each precision."""
    fake = load_fake_batch(run)
    for dtype in run.dtypes:
        record = Recorder(run.output(f"loss_{SIDE}", dtype))
        model = load_bert(run, dtype)  # eval mode: no dropout
        with torch.no_grad():
            logits = model(torch.from_numpy(fake.input_ids))  # (B, num_labels)
        labels = torch.from_numpy(fake.labels)  # (B,)
        one_ignored = labels.clone()
        one_ignored[-1] = settings.IGNORE_INDEX
        soft_labels = torch.tensor(settings.SOFT_LABELS)
        weight = torch.tensor(settings.CLASS_WEIGHTS)
        smoothing = settings.LABEL_SMOOTHING

        record.add("loss", criterion(logits, labels))
        record.add("label_smoothing", F.cross_entropy(logits, labels, label_smoothing=smoothing))
        record.add("class_weights", F.cross_entropy(logits, labels, weight=weight))
        ignore = {"ignore_index": settings.IGNORE_INDEX, "reduction": "mean"}
        record.add("ignore_index", F.cross_entropy(logits, one_ignored, **ignore))
        record.add("soft_labels", F.cross_entropy(logits, soft_labels))
        record.add("mean_squared_error", F.mse_loss(logits, soft_labels))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"loss_{SIDE}")
