"""Label and probability of sentences, or the score of pairs.

reads   sentences of the command line, or of --file, one a line; a task's two texts with a tab between
        weights/{torch_weight.bin,paddle_weight.pdparams}, and the classifier's weights, or --checkpoint
prints  label, its probability (of STS-B the score) and the sentence, with tabs between them
pair    pt_predict.py and pd_predict.py: the same lines, with torch's calls or Paddle's
"""

from pipeline.pd import SIDE
from pipeline.pd.loader import data_loader, encode, load_tokenizer
from pipeline.pd.model import load_bert, use_device
from pipeline.run import Run, start
from pipeline.settings import STRICT_DTYPE
from pipeline.training.options import check_length
from pipeline.training.prediction import add_options, answer, read_sentences, read_trained_weights
from reprod_align.backends.paddle import load_weights

import paddle
from paddlenlp.datasets import MapDataset


def main(run: Run) -> None:
    """Predict in float64, so that both sides print the same digits."""
    check_length(run)
    found, tokenizer, model = read_sentences(run), load_tokenizer(run), load_bert(run, STRICT_DTYPE)
    trained = read_trained_weights(run, SIDE)
    if trained is not None:
        load_weights(model, trained)
    device = use_device(run.options.device)
    model = model.to(device)
    longest = run.options.max_length
    examples = MapDataset([encode(tokenizer, texts, longest) for texts in found])
    rows = []
    for batch in data_loader(examples, tokenizer, run.options.batch_size):
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        with paddle.no_grad():
            rows += model(**batch).tolist()  # (B, num_labels)
    for texts, logits in zip(found, rows, strict=True):
        print("\t".join([*answer(run.task, logits), *texts]))


if __name__ == "__main__":
    start(main, __doc__, add_options)
