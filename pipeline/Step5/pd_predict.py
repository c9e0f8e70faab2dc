"""Label and probability of sentences, Paddle side.

reads   sentences of the command line, or of --file, one a line
        weights/paddle_weight.pdparams            and the classifier's weights, or --checkpoint
prints  label, its probability and the sentence, with tabs between them
pair    pt_predict.py                           the same lines with PyTorch's calls
"""

from pipeline import settings
from pipeline.pd_checkpoint import place
from pipeline.pd_loader import data_loader, load_tokenizer
from pipeline.pd_model import load_bert
from pipeline.prediction import add_options, sentences, trained_weights
from pipeline.run import JUDGE, Run, start
from pipeline.training_options import check_length
from reprod_align.backends.paddle import load_weights

import paddle
import paddle.nn.functional as F
from paddlenlp.datasets import MapDataset


def main(run: Run) -> None:
    """Predict in float64, so that both sides print the same digits."""
    check_length(run)
    found, tokenizer, model = sentences(run), load_tokenizer(run), load_bert(run, JUDGE)
    trained = trained_weights(run, "paddle")
    if trained is not None:
        load_weights(model, trained)
    model = model.to(place(run.options.device))
    cut = {"max_length": run.options.max_length, "truncation": True, "return_attention_mask": True}
    examples = MapDataset([dict(tokenizer(sentence, **cut)) for sentence in found])
    rows = []
    for batch in data_loader(examples, tokenizer, run.options.batch_size):
        batch = {name: tensor.to(place(run.options.device)) for name, tensor in batch.items()}
        with paddle.no_grad():
            rows += F.softmax(model(**batch), axis=-1).tolist()  # (B, num_labels)
    for sentence, probabilities in zip(found, rows, strict=True):
        label = max(range(settings.NUM_LABELS), key=probabilities.__getitem__)
        print(f"{label}\t{probabilities[label]:.6f}\t{sentence}")


if __name__ == "__main__":
    start(main, __doc__, add_options)
