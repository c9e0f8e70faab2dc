"""Step 5: what BERT starts from, before any weights are loaded.

reads   weights/config.json                     the shape, written by weights/torch_bert_weight.py
writes  log_reprod/strict/init_SIDE.npy         samples of every parameter, over eight seeds
pair    pt_init.py and pd_init.py: the same lines, SIDE is torch or paddle
"""

from functools import partial

import pipeline  # noqa: F401  (quietens what follows)
from models.pt_bert import BertForSequenceClassification
from pipeline.bert.exported import read_config
from pipeline.pt import SIDE
from pipeline.run import Run, start
from reprod_align.backends.torch import sample_parameters, set_precision
from reprod_align.initialisation.sample import SEEDS, as_record
from reprod_align.records import save_record


def main(run: Run) -> None:
    """Build the model with every seed and keep what its parameters start from."""
    set_precision("float32")
    samples = sample_parameters(partial(BertForSequenceClassification, read_config(run)))
    save_record(run.output(f"init_{SIDE}"), as_record(samples))
    print(f"{SIDE}: {len(samples)} parameters, drawn with {len(SEEDS)} seeds")


if __name__ == "__main__":
    start(main, __doc__, writes=f"init_{SIDE}")
