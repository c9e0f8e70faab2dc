"""Step 2: the metrics of the untrained classifier on real sentences.

reads   pipeline/Step2/demo_sst2_sentence/demo.tsv  or dev.tsv of --data-dir
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights
writes  log_reprod/metric_SIDE.npy                  accuracy, precision, recall, F1, AUC,
                                                    or the metrics of --task
        log_reprod/strict/metric_SIDE.npy           what they are made of: logits (float64), counts
pair    pt_metric.py and pd_metric.py: the same lines, SIDE is torch or paddle
"""

from pipeline.pd import SIDE
from pipeline.pd.loader import data_loader, load_examples, load_tokenizer
from pipeline.pd.metrics import build_metrics
from pipeline.pd.model import load_bert
from pipeline.run import Run, start
from pipeline.settings import EVAL_BATCH_SIZE, STRICT_DTYPE
from reprod_align import Recorder

import paddle


def main(run: Run) -> None:
    """Score every sentence, the short last batch included, once in each precision."""
    tokenizer = load_tokenizer(run)
    demo = load_examples(run.corpus.demo, tokenizer)
    for dtype in run.dtypes:
        record = Recorder(run.output(f"metric_{SIDE}", dtype))
        model = load_bert(run, dtype)
        metrics = build_metrics(run.task)
        for index, batch in enumerate(data_loader(demo, tokenizer, EVAL_BATCH_SIZE)):
            labels = batch.pop("labels")  # (B,)
            with paddle.no_grad():
                logits = model(**batch)  # (B, num_labels)
            metrics.update(logits, labels)
            if dtype == STRICT_DTYPE:
                record.add_all({f"batch_{index}_logits": logits, f"batch_{index}_labels": labels})
        record.add_all(metrics.counts() if dtype == STRICT_DTYPE else metrics.values())
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"metric_{SIDE}")
