"""A pair for `pair --parallel dp=2,tp=2`: Step 5's BERT, its layers exchanged for fleet's, against its twin.

The port keeps the twin's code: what is cut are the projections, the feed-forward network and the word table.
"""

from models.bert_config import BertConfig

import numpy as np

CONFIG = BertConfig(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48,
    max_position_embeddings=16, hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1,
)  # fmt: skip
_source = np.random.default_rng(0)
inputs = {
    "input_ids": _source.integers(1, 64, (4, 8)),
    "attention_mask": np.array([[1] * 8, [1] * 8, [1] * 5 + [0] * 3, [1] * 7 + [0]]),
    "labels": np.array([0, 1, 1, 0]),
}


def torch_model():
    from models.pt_bert import BertForSequenceClassification

    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = BertForSequenceClassification(CONFIG)

        def forward(self, input_ids, attention_mask, labels):
            logits = self.bert(input_ids, attention_mask)  # (B, 2)
            return logits, nn.functional.cross_entropy(logits, labels)

    torch.manual_seed(0)
    return Model()


def paddle_model():
    from models.pd_bert import BertForSequenceClassification

    from paddle import nn
    from paddle.distributed import fleet

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.bert = BertForSequenceClassification(CONFIG)

        def forward(self, input_ids, attention_mask, labels):
            logits = self.bert(input_ids, attention_mask)  # (B, 2)
            return logits, nn.functional.cross_entropy(logits, labels)

    model = Model()
    exchange_layers(model.bert.bert)
    return fleet.distributed_model(model)


def exchange_layers(bert):
    """Let each rank hold a part of the heads, of the feed-forward network and of the word table."""
    import paddle
    from paddle import nn
    from paddle.distributed import fleet
    from paddle.distributed.fleet.layers.mpu.random import get_rng_state_tracker

    mpu = fleet.meta_parallel
    ranks = fleet.get_hybrid_communicate_group().get_model_parallel_world_size()

    class CutDropout(nn.Dropout):
        """Drops from a stream of each rank's own, as the heads are each rank's own."""

        def forward(self, x):
            with get_rng_state_tracker().rng_state("local_seed"):
                return super().forward(x)

    class CutWords(mpu.VocabParallelEmbedding):
        """The word table, whose pad row has no gradient."""

        def forward(self, input_ids):
            rows = super().forward(input_ids)  # (B, L, D)
            return paddle.where(
                (input_ids == CONFIG.pad_token_id).unsqueeze(-1), rows.detach(), rows
            )

    def cut_columns(linear):
        return mpu.ColumnParallelLinear(*linear.weight.shape, has_bias=True, gather_output=False)

    def cut_rows(linear):
        return mpu.RowParallelLinear(*linear.weight.shape, has_bias=True, input_is_parallel=True)

    bert.embeddings.word_embeddings = CutWords(CONFIG.vocab_size, CONFIG.hidden_size)
    for layer in bert.encoder.layer:
        attention, made = layer.attention.self, layer.attention.output
        attention.num_heads //= ranks
        for name in ("query", "key", "value"):
            setattr(attention, name, cut_columns(getattr(attention, name)))
        attention.dropout = CutDropout(CONFIG.attention_probs_dropout_prob)
        made.dense = cut_rows(made.dense)
        layer.intermediate.dense = cut_columns(layer.intermediate.dense)
        layer.output.dense = cut_rows(layer.output.dense)


def torch_loss(output):
    return output[1]


def paddle_loss(output):
    return output[1]


def torch_optimizer(model):
    import torch

    return torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)


def paddle_optimizer(model):
    import paddle
    from paddle.distributed import fleet

    made = paddle.optimizer.AdamW(1e-3, parameters=model.parameters(), weight_decay=0.01)
    return fleet.distributed_optimizer(made)
