"""Export the profile's BERT as PyTorch weights.

reads   a Hugging Face checkpoint: the profile's, or --weights DIR (random profiles draw theirs)
writes  weights/torch_weight.bin    state dict of BertModel, Hugging Face's names, float32
        weights/config.json         the checkpoint's shape, and the profile it belongs to
        weights/vocab.txt           the checkpoint's vocabulary
"""

from models.pt_bert import BertModel
from pipeline import settings
from pipeline.bert.exported import select_bert_weights, weight_files, write_description
from pipeline.profiles import check_minilm, find_source, find_weights_file, read_source_config
from pipeline.run import Run, start
from reprod_align.backends.torch import load_weights, read_weights, weights_of, write_weights
from reprod_align.base.text import shorten_path

import torch


@torch.no_grad()
def _spread_constants(model: BertModel) -> None:
    """Move biases and the pad row off 0 and LayerNorm off 1, as training would: constants hide faults."""
    pad_row = model.embeddings.word_embeddings.weight[model.config.pad_token_id]
    for constant in (pad_row, *(p for p in model.parameters() if p.dim() == 1)):
        constant.add_(torch.randn_like(constant), alpha=model.config.initializer_range)


def main(run: Run) -> None:
    """Load the checkpoint strictly into our BertModel, and save that model's state dict."""
    checkpoint = run.options.weights
    if run.profile.name == "minilm" and checkpoint is None:
        check_minilm()
    torch.manual_seed(settings.SEED)
    model = BertModel(read_source_config(run.profile, checkpoint))
    folder = find_source(run.profile, checkpoint)
    if folder is None:
        _spread_constants(model)
    else:
        load_weights(model, select_bert_weights(read_weights(find_weights_file(folder))))
    write_description(run)  # first: it may refuse, and earlier weights stay with their config.json
    output, _ = weight_files(run, "torch")
    write_weights(output, weights_of(model))
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"wrote {shorten_path(output)}: {len(model.state_dict())} tensors, {count:,} parameters")


if __name__ == "__main__":
    start(main, __doc__)
