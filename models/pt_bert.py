"""BERT in PyTorch, simplified to be read beside its twin: the same lines, only the calls differ.

Parameters are named as Hugging Face names them, so real checkpoints load strictly. Shapes:
B batch, L length, D hidden_size, H heads, K = D / H, I intermediate_size, V vocab_size.

source  https://github.com/huggingface/transformers/blob/main/src/transformers/models/bert/modeling_bert.py
pair    pd_bert.py
"""

# ruff: noqa: D107  (the class says what it is; __init__ needs no words of its own)
import math
from functools import partial
from typing import Any

from models.bert_config import BertConfig, upgrade_names

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = [
    "BertAttention",
    "BertConfig",
    "BertEmbeddings",
    "BertEncoder",
    "BertForMaskedLM",
    "BertForSequenceClassification",
    "BertIntermediate",
    "BertLayer",
    "BertModel",
    "BertOutput",
    "BertPooler",
    "BertSelfAttention",
    "BertSelfOutput",
]

ACTIVATIONS = {
    "gelu": nn.GELU,  # the exact one, with erf
    "gelu_new": partial(nn.GELU, approximate="tanh"),
    "gelu_pytorch_tanh": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
}


class BertWordEmbeddings(nn.Embedding):
    """The word table, with PyTorch's meaning of `padding_idx` on both sides."""

    def forward(self, input_ids: Tensor) -> Tensor:
        """Look up token ids (B, L): rows of the table (B, L, D)."""
        # For the pad token, PyTorch returns its row of the table and gives that row no gradient;
        # Paddle's own padding_idx gives no gradient either, but returns zeros whatever the row
        # holds (in pretrained weights not zeros). So the Paddle twin looks up without it, and
        # detaches the pad rows. Both start from a zero row.
        rows = F.embedding(input_ids, self.weight, padding_idx=self.padding_idx)  # (B, L, D)
        return rows


class BertEmbeddings(nn.Module):
    """Sum of word, token-type and position embeddings, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        V, D, pad = config.vocab_size, config.hidden_size, config.pad_token_id
        self.max_length = config.max_position_embeddings
        self.word_embeddings = BertWordEmbeddings(V, D, padding_idx=pad)
        self.position_embeddings = nn.Embedding(self.max_length, D)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, D)
        self.LayerNorm = nn.LayerNorm(D, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Tensor,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Embed integer ids (B, L) as (B, L, D); ValueError above max_position_embeddings."""
        length = input_ids.shape[1]
        if length > self.max_length:
            raise ValueError(
                f"input_ids are {length} tokens long, max_position_embeddings is {self.max_length}"
            )
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)  # (B, L)
        if position_ids is None:
            position_ids = torch.arange(length, device=input_ids.device).unsqueeze(0)  # (1, L)
        words = self.word_embeddings(input_ids)  # (B, L, D)
        token_types = self.token_type_embeddings(token_type_ids)  # (B, L, D)
        positions = self.position_embeddings(position_ids)  # (B, L, D) or (1, L, D)
        return self.dropout(self.LayerNorm(words + token_types + positions))  # (B, L, D)


class BertSelfAttention(nn.Module):
    """Multi-head attention of every token to every token that the mask keeps."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        D = config.hidden_size
        self.num_heads = config.num_attention_heads
        self.head_size = D // self.num_heads
        self.query = nn.Linear(D, D)
        self.key = nn.Linear(D, D)
        self.value = nn.Linear(D, D)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def split_heads(self, x: Tensor) -> Tensor:
        """Give each head its part of the features: (B, L, D) to (B, H, L, K)."""
        B, L, _ = x.shape
        return x.reshape([B, L, self.num_heads, self.head_size]).permute([0, 2, 1, 3])

    def merge_heads(self, x: Tensor) -> Tensor:
        """Put the heads' features side by side again: (B, H, L, K) to (B, L, D)."""
        B, H, L, K = x.shape
        return x.permute([0, 2, 1, 3]).reshape([B, L, H * K])

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Mix hidden (B, L, D) over L, with mask (B, 1, 1, L) added to the scores: (B, L, D)."""
        query = self.split_heads(self.query(hidden))  # (B, H, L, K)
        key = self.split_heads(self.key(hidden))  # (B, H, L, K)
        value = self.split_heads(self.value(hidden))  # (B, H, L, K)
        scores = torch.matmul(query, key.transpose(-1, -2))  # (B, H, L, L)
        scores = scores / math.sqrt(self.head_size) + mask  # (B, H, L, L)
        probs = self.dropout(F.softmax(scores, dim=-1))  # (B, H, L, L)
        context = torch.matmul(probs, value)  # (B, H, L, K)
        return self.merge_heads(context)  # (B, L, D)


class BertSelfOutput(nn.Module):
    """Projection after attention, added to the attention's input and normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, context: Tensor, residual: Tensor) -> Tensor:
        """Project context (B, L, D) and add residual (B, L, D): (B, L, D)."""
        return self.LayerNorm(self.dropout(self.dense(context)) + residual)  # (B, L, D)


class BertAttention(nn.Module):
    """The first half of a layer: self-attention and its output."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.self = BertSelfAttention(config)
        self.output = BertSelfOutput(config)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Attend within hidden (B, L, D) under mask (B, 1, 1, L): (B, L, D)."""
        return self.output(self.self(hidden, mask), hidden)  # (B, L, D)


class BertIntermediate(nn.Module):
    """The wide half of the feed-forward network."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.intermediate_act_fn = ACTIVATIONS[config.hidden_act]()

    def forward(self, hidden: Tensor) -> Tensor:
        """Widen hidden (B, L, D) to (B, L, I)."""
        return self.intermediate_act_fn(self.dense(hidden))  # (B, L, I)


class BertOutput(nn.Module):
    """The narrow half of the feed-forward network, added to its input and normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.intermediate_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, wide: Tensor, residual: Tensor) -> Tensor:
        """Narrow wide (B, L, I) and add residual (B, L, D): (B, L, D)."""
        return self.LayerNorm(self.dropout(self.dense(wide)) + residual)  # (B, L, D)


class BertLayer(nn.Module):
    """One transformer layer: attention, then the feed-forward network."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = BertAttention(config)
        self.intermediate = BertIntermediate(config)
        self.output = BertOutput(config)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Transform hidden (B, L, D) under mask (B, 1, 1, L): (B, L, D)."""
        attended = self.attention(hidden, mask)  # (B, L, D)
        return self.output(self.intermediate(attended), attended)  # (B, L, D)


class BertEncoder(nn.Module):
    """The layers, one after the other."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        layers = [BertLayer(config) for _ in range(config.num_hidden_layers)]
        self.layer = nn.ModuleList(layers)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Pass hidden (B, L, D) through every layer under mask (B, 1, 1, L): (B, L, D)."""
        for layer in self.layer:
            hidden = layer(hidden, mask)  # (B, L, D)
        return hidden


class BertPooler(nn.Module):
    """The sentence as one vector, made from its first token."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.activation = nn.Tanh()

    def forward(self, hidden: Tensor) -> Tensor:
        """Pool hidden (B, L, D) to (B, D)."""
        return self.activation(self.dense(hidden[:, 0]))  # (B, D)


class BertPreTrainedModel(nn.Module):
    """What the models below share: initialisation, and old names in checkpoints."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config

    def _init_weights(self, module: nn.Module) -> None:
        """Draw weights from normal(0, initializer_range); biases and the pad row start at zero."""
        std = self.config.initializer_range
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            nn.init.constant_(module.bias, 0.0)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, mean=0.0, std=std)
            if module.padding_idx is not None:
                with torch.no_grad():
                    module.weight[module.padding_idx] = 0.0
        elif isinstance(module, nn.LayerNorm):
            nn.init.constant_(module.weight, 1.0)
            nn.init.constant_(module.bias, 0.0)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Bring a checkpoint's old names up to date before `load_state_dict` compares them.

        state_dict: of the whole model that loads; prefix: this module's name in it and a dot, or "".
        """
        upgrade_names(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)


def additive_mask(attention_mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Turn a mask of 1 (keep) and 0 (ignore), any dtype, (B, L) into what is added to the scores.

    That is (B, 1, 1, L): 0, or the most negative finite number of `dtype`. Raises ValueError unless
    the mask has two axes.
    """
    if attention_mask.ndim != 2:
        raise ValueError(f"attention_mask must be (B, L), got {list(attention_mask.shape)}")
    ignored = 1.0 - attention_mask.to(dtype)  # (B, L)
    return ignored.unsqueeze(1).unsqueeze(1) * torch.finfo(dtype).min  # (B, 1, 1, L)


class BertModel(BertPreTrainedModel):
    """The bare encoder: embeddings, layers and, unless left out, the pooler."""

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config)
        self.embeddings = BertEmbeddings(config)
        self.encoder = BertEncoder(config)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.apply(self._init_weights)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Encode token ids: the sequence (B, L, D), and the pooled sentence (B, D) or None.

        All inputs are (B, L): integer ids, and a mask of 1 and 0 in any dtype, None for all ones.
        Raises ValueError if L is above max_position_embeddings or the mask is not (B, L).
        """
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)  # (B, L)
        hidden = self.embeddings(input_ids, token_type_ids, position_ids)  # (B, L, D)
        mask = additive_mask(attention_mask, hidden.dtype)  # (B, 1, 1, L)
        sequence_output = self.encoder(hidden, mask)  # (B, L, D)
        if self.pooler is None:
            return sequence_output, None
        return sequence_output, self.pooler(sequence_output)  # (B, L, D), (B, D)


class BertForSequenceClassification(BertPreTrainedModel):
    """BERT with a linear classifier on the pooled sentence."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config)
        dropout = config.classifier_dropout
        self.dropout = nn.Dropout(config.hidden_dropout_prob if dropout is None else dropout)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)
        self.classifier.apply(self._init_weights)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Classify: logits (B, num_labels); inputs and errors as in BertModel."""
        _, pooled = self.bert(input_ids, attention_mask, token_type_ids, position_ids)  # (B, D)
        return self.classifier(self.dropout(pooled))  # (B, num_labels)


class BertPredictionHeadTransform(nn.Module):
    """The layer between the encoder and the vocabulary."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.transform_act_fn = ACTIVATIONS[config.hidden_act]()
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """Transform hidden (B, L, D) to (B, L, D)."""
        return self.LayerNorm(self.transform_act_fn(self.dense(hidden)))  # (B, L, D)


class BertTiedDecoder(nn.Module):
    """A linear layer on parameters that others own: (V, D) on both sides, stored once."""

    def __init__(self, weight: nn.Parameter, bias: nn.Parameter) -> None:
        super().__init__()
        self.weight = weight  # (V, D), the word table
        self.bias = bias  # (V,)

    def forward(self, hidden: Tensor) -> Tensor:
        """Score every word of the vocabulary for hidden (B, L, D): (B, L, V)."""
        return F.linear(hidden, self.weight, self.bias)  # (B, L, V)


class BertLMPredictionHead(nn.Module):
    """From hidden states to vocabulary logits."""

    def __init__(self, config: BertConfig, word_table: nn.Parameter) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros([config.vocab_size]))  # (V,)
        self.transform = BertPredictionHeadTransform(config)
        self.decoder = BertTiedDecoder(word_table, self.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Predict words from hidden (B, L, D): (B, L, V)."""
        return self.decoder(self.transform(hidden))  # (B, L, V)


class BertOnlyMLMHead(nn.Module):
    """Holds the prediction head under the name that checkpoints give it."""

    def __init__(self, config: BertConfig, word_table: nn.Parameter) -> None:
        super().__init__()
        self.predictions = BertLMPredictionHead(config, word_table)

    def forward(self, hidden: Tensor) -> Tensor:
        """Predict words from hidden (B, L, D): (B, L, V)."""
        return self.predictions(hidden)  # (B, L, V)


class BertForMaskedLM(BertPreTrainedModel):
    """BERT with a language-model head whose decoder is the word table itself."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__(config)
        self.bert = BertModel(config, add_pooling_layer=False)
        self.cls = BertOnlyMLMHead(config, self.bert.embeddings.word_embeddings.weight)
        self.cls.apply(self._init_weights)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
    ) -> Tensor:
        """Predict every token: logits (B, L, V); inputs and errors as in BertModel."""
        hidden, _ = self.bert(input_ids, attention_mask, token_type_ids, position_ids)  # (B, L, D)
        return self.cls(hidden)  # (B, L, V)
