"""Step 1: the logits of one forward pass on the fake batch.

reads   fake_data/fake_data.npy, fake_label.npy     (4, 64) and (4,) int64
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/forward_SIDE.npy                 fake batch and logits (4, 2), float32
        log_reprod/strict/forward_SIDE.npy          the same in float64, every layer's output,
                                                    and a padded batch of two segments
pair    pt_forward_bert.py and pd_forward_bert.py: the same lines, SIDE is torch or paddle
"""

from pipeline.bert.exported import layer_names
from pipeline.bert.fake_batch import load_fake_batch
from pipeline.pd import SIDE
from pipeline.pd.model import load_bert
from pipeline.run import Run, start
from pipeline.settings import STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.paddle import layer_outputs

import paddle


def main(run: Run) -> None:
    """Record the fake batch and its logits, once in each precision."""
    fake = load_fake_batch(run)
    for dtype in run.dtypes:
        record = Recorder(run.output(f"forward_{SIDE}", dtype))
        record.add("fake_data", fake.input_ids)
        record.add("fake_label", fake.labels)
        model = load_bert(run, dtype)  # eval mode: no dropout
        input_ids = paddle.to_tensor(fake.input_ids)  # (B, L)
        with paddle.no_grad(), layer_outputs(model, layer_names(model.config)) as layers:
            logits = model(input_ids)  # (B, num_labels)
        if dtype == STRICT_DTYPE:
            padded = {name: paddle.to_tensor(array) for name, array in fake.padded.items()}
            with paddle.no_grad():
                sequence, pooled = model.bert(**padded)  # (B, L, D), (B, D)
            record.add_all(layers)
            record.add("padded_sequence", sequence)
            record.add("padded_pooled", pooled)
        record.add("logits", logits)
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"forward_{SIDE}")
