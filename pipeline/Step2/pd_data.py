"""Step 2: what the data pipeline makes of the sentences.

reads   pipeline/Step2/demo_sst2_sentence/          demo.tsv and train.tsv, or those of --data-dir
        weights/vocab.txt
writes  log_reprod/strict/data_SIDE.npy             every example and every batch of the demo set,
                                                    and the training batches in their seeded order
pair    pt_data.py and pd_data.py: the same lines, SIDE is torch or paddle
"""

from pipeline import settings
from pipeline.pd import SIDE
from pipeline.pd.loader import KEYS, data_loader, load_examples, load_tokenizer
from pipeline.run import Run, start
from reprod_align import Recorder
from reprod_align.randomness import epoch_order


def main(run: Run) -> None:
    """Record integers only, so nothing here may differ at all."""
    record = Recorder(run.output(f"data_{SIDE}"))
    tokenizer = load_tokenizer(run)
    demo = load_examples(run.corpus.demo, tokenizer)
    record.add("length", len(demo))
    for index, example in enumerate(demo):
        record.add_all({f"dataset_{index}_{key}": example[key] for key in KEYS})
    for index, batch in enumerate(data_loader(demo, tokenizer, settings.EVAL_BATCH_SIZE)):
        record.add_all({f"dataloader_{index}_{key}": batch[key] for key in KEYS})

    train = load_examples(run.corpus.train, tokenizer)
    for epoch in range(settings.ORDER_EPOCHS):
        order = epoch_order(len(train), settings.SEED, epoch)
        batches = data_loader(train, tokenizer, settings.TRAIN_BATCH_SIZE, order)
        for index, batch in enumerate(batches):
            record.add_all({f"train_{epoch}_{index}_{key}": batch[key] for key in KEYS})
    record.save()


if __name__ == "__main__":
    start(main, __doc__, writes=f"data_{SIDE}")
