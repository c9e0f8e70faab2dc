"""Informer in Paddle, written to be read beside its twin: the same lines, only the calls differ.

Parameters and buffers are named and shaped as in the original, so its checkpoints load strictly; with
the same weights and random draws the same is computed. Shapes: B batch, L length (queries), S length
(keys), D d_model, H heads, K head size, U samples of ProbSparse attention, C columns of the series.

source  https://github.com/zhouhaoyi/Informer2020/tree/main/models
paper   Zhou et al., "Informer: Beyond Efficient Transformer for Long Sequence Time-Series
        Forecasting", AAAI 2021
pair    pt_informer.py
"""

# ruff: noqa: D107  (the class says what it is; __init__ needs no words of its own)
import math
from collections.abc import Sequence
from typing import Any

from models.informer_arguments import (
    DAYS,
    HOURS,
    MAX_LENGTH,
    MONTHS,
    QUARTERS,
    WEEKDAYS,
    InformerArguments,
    InformerStackArguments,
    sparse_count,
)

import paddle
import paddle.nn.functional as F
from paddle import Tensor, nn

__all__ = ["Informer", "InformerStack"]

Attention = tuple[Tensor, Tensor | None]


def uniform(fan_in: int) -> paddle.ParamAttr:
    """Return how PyTorch initialises weights and biases of linear and convolutional layers."""
    bound = fan_in**-0.5
    return paddle.ParamAttr(initializer=nn.initializer.Uniform(-bound, bound))


def linear(c_in: int, c_out: int) -> nn.Linear:
    """Return nn.Linear, initialised as PyTorch's."""
    return nn.Linear(c_in, c_out, uniform(c_in), uniform(c_in))


def conv1d(c_in: int, c_out: int, kernel_size: int, **options: Any) -> nn.Conv1D:
    """Return nn.Conv1D, initialised as PyTorch's."""
    start = uniform(c_in * kernel_size)
    return nn.Conv1D(c_in, c_out, kernel_size, weight_attr=start, bias_attr=start, **options)


def embedding(rows: int, D: int) -> nn.Embedding:
    """Return nn.Embedding, initialised as PyTorch's."""
    start = paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 1.0))
    return nn.Embedding(rows, D, weight_attr=start)


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm whose epsilon is what it says: Paddle's own rounds it to float32."""

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (B, L, D) over D: (B, L, D)."""
        centred = x - x.mean(-1, keepdim=True)  # (B, L, D)
        variance = (centred * centred).mean(-1, keepdim=True)  # (B, L, 1)
        return centred / paddle.sqrt(variance + self._epsilon) * self.weight + self.bias


class BatchNorm1D(nn.BatchNorm1D):
    """nn.BatchNorm1D with PyTorch's running variance, the unbiased one, and exact constants.

    Paddle's own keeps the biased variance, and rounds epsilon and momentum to float32.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise x (B, D, L) over B and L: (B, D, L)."""
        mean, variance = self._mean, self._variance  # (D,)
        if self.training:
            mean = x.mean([0, 2])
            variance = ((x - mean.unsqueeze(-1)) ** 2).mean([0, 2])
            self._remember(mean.detach(), variance.detach(), x.shape[0] * x.shape[2])
        factor = self.weight / paddle.sqrt(variance + self._epsilon)  # (D,)
        return (x - mean.unsqueeze(-1)) * factor.unsqueeze(-1) + self.bias.unsqueeze(-1)

    def _remember(self, mean: Tensor, variance: Tensor, count: int) -> None:
        unbiased = variance * (count / (count - 1))
        old = self._momentum  # the share that is kept; PyTorch's momentum is the share of the new
        self._mean.set_value(old * self._mean + (1 - old) * mean)
        self._variance.set_value(old * self._variance + (1 - old) * unbiased)


def sinusoids(rows: int, D: int) -> Tensor:
    """Return (rows, D): sines in the even columns, cosines in the odd ones, rounded to float32."""
    position = paddle.arange(0, rows, dtype="float32").unsqueeze(1)  # (rows, 1)
    even = paddle.arange(0, D, 2, dtype="float32")  # (D / 2,)
    angle = position * (even * -(math.log(10000.0) / D)).exp()  # (rows, D / 2)
    table = paddle.stack([paddle.sin(angle), paddle.cos(angle)], axis=-1).reshape([rows, D])
    return table.astype(paddle.get_default_dtype())


class PositionalEmbedding(nn.Layer):
    """The table of positions: not trained, but kept in checkpoints."""

    def __init__(self, D: int) -> None:
        super().__init__()
        self.register_buffer("pe", sinusoids(MAX_LENGTH, D).unsqueeze(0))  # (1, MAX_LENGTH, D)

    def forward(self, x: Tensor) -> Tensor:
        """Return the positions of series (B, L, C): (1, L, D)."""
        return self.pe[:, : x.shape[1]]


class TokenEmbedding(nn.Layer):
    """The values around each position, by a convolution that takes the series for a ring."""

    def __init__(self, C: int, D: int) -> None:
        super().__init__()
        self.tokenConv = conv1d(C, D, kernel_size=3, padding=1, padding_mode="circular")
        nn.initializer.KaimingNormal(nonlinearity="leaky_relu")(self.tokenConv.weight)

    def forward(self, x: Tensor) -> Tensor:
        """Embed series (B, L, C): (B, L, D)."""
        return self.tokenConv(x.transpose([0, 2, 1])).transpose([0, 2, 1])  # (B, L, D)


class FixedEmbedding(nn.Layer):
    """A table of sines and cosines in the place of a trained one."""

    def __init__(self, rows: int, D: int) -> None:
        super().__init__()
        self.emb = embedding(rows, D)
        self.emb.weight.set_value(sinusoids(rows, D))
        self.emb.weight.stop_gradient = True

    def forward(self, x: Tensor) -> Tensor:
        """Look up integers (B, L): (B, L, D)."""
        return self.emb(x).detach()


class TemporalEmbedding(nn.Layer):
    """When each value was measured: the sum of a row for the hour, one for the weekday, and so on."""

    def __init__(self, D: int, embed: str, freq: str) -> None:
        super().__init__()
        table = FixedEmbedding if embed == "fixed" else embedding
        self.minute_embed = table(QUARTERS, D) if freq == "t" else None
        self.hour_embed = table(HOURS, D)
        self.weekday_embed = table(WEEKDAYS, D)
        self.day_embed = table(DAYS, D)
        self.month_embed = table(MONTHS, D)

    def forward(self, marks: Tensor) -> Tensor:
        """Embed marks (B, L, 4 or 5), whole numbers in any dtype: (B, L, D)."""
        marks = marks.astype("int64")
        hour, weekday = self.hour_embed(marks[:, :, 3]), self.weekday_embed(marks[:, :, 2])
        day, month = self.day_embed(marks[:, :, 1]), self.month_embed(marks[:, :, 0])
        total = hour + weekday + day + month  # (B, L, D)
        return total if self.minute_embed is None else total + self.minute_embed(marks[:, :, 4])


class TimeFeatureEmbedding(nn.Layer):
    """When each value was measured, from numbers between -0.5 and 0.5."""

    def __init__(self, features: int, D: int) -> None:
        super().__init__()
        self.embed = linear(features, D)

    def forward(self, marks: Tensor) -> Tensor:
        """Embed time features (B, L, features): (B, L, D)."""
        return self.embed(marks)


class DataEmbedding(nn.Layer):
    """Sum of value, position and time."""

    def __init__(self, C: int, arguments: InformerArguments) -> None:
        super().__init__()
        D, embed, freq = arguments.d_model, arguments.embed, arguments.freq
        self.value_embedding = TokenEmbedding(C, D)
        self.position_embedding = PositionalEmbedding(D)
        if embed == "timeF":
            self.temporal_embedding = TimeFeatureEmbedding(arguments.mark_columns, D)
        else:
            self.temporal_embedding = TemporalEmbedding(D, embed, freq)
        self.dropout = nn.Dropout(arguments.dropout)

    def forward(self, x: Tensor, marks: Tensor) -> Tensor:
        """Embed series (B, L, C) and marks (B, L, columns): (B, L, D)."""
        values, positions = self.value_embedding(x), self.position_embedding(x)
        return self.dropout(values + positions + self.temporal_embedding(marks))  # (B, L, D)


class FullAttention(nn.Layer):
    """Every query looks at every key, or with `causal` at those up to its own position."""

    def __init__(self, causal: bool, dropout: float, output_attention: bool) -> None:
        super().__init__()
        self.causal, self.output_attention = causal, output_attention
        self.dropout = nn.Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Attention:
        """Mix value (B, S, H, K) for query (B, L, H, K) and key (B, S, H, K).

        mask: bool, True where a score (B, H, L, S) is hidden; of use where causal, instead of the
        triangle. Returns (B, L, H, K) and, if asked for, the probabilities (B, H, L, S), else None.
        """
        L, S = query.shape[1], key.shape[1]
        scores = paddle.einsum("blhe,bshe->bhls", query, key)  # (B, H, L, S)
        if self.causal:
            if mask is None:
                mask = paddle.ones([L, S], dtype="bool").triu(1)
            scores = scores.masked_fill(getattr(mask, "mask", mask), -math.inf)
        scale = 1.0 / math.sqrt(query.shape[-1])
        probs = self.dropout(F.softmax(scale * scores, axis=-1))  # (B, H, L, S)
        context = paddle.einsum("bhls,bshd->blhd", probs, value)  # (B, L, H, K)
        return context, probs if self.output_attention else None


class ProbAttention(nn.Layer):
    """ProbSparse attention: only the queries that find some keys far likelier than others look.

    How much a query would find is estimated on a random sample of the keys, one sample for every
    sequence and head. The others get the mean of all values; with `causal`, the sum so far.
    """

    def __init__(self, causal: bool, factor: int, dropout: float, output_attention: bool) -> None:
        super().__init__()
        self.causal, self.factor, self.output_attention = causal, factor, output_attention
        self.dropout = nn.Dropout(dropout)  # never called, in the original too

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Any = None) -> Attention:
        """Mix value (B, S, H, K) for query (B, L, H, K) and key (B, S, H, K); no mask is used.

        Returns (B, L, H, K) and, if asked for, the probabilities (B, H, S, S), else None.
        """
        query = query.transpose([0, 2, 1, 3])  # (B, H, L, K)
        key = key.transpose([0, 2, 1, 3])  # (B, H, S, K)
        value = value.transpose([0, 2, 1, 3])  # (B, H, S, K)
        top = self.most_active(query, key)  # (B, H, U)
        probs = self.probabilities(query, key, top)  # (B, H, U, S)
        rows = top.unsqueeze(-1).expand([*top.shape, value.shape[-1]])  # (B, H, U, K)
        chosen = paddle.matmul(probs, value)  # (B, H, U, K)
        context = self.initial_context(value, query.shape[2])  # (B, H, L, K)
        chosen = chosen.astype(context.dtype)
        context = paddle.put_along_axis(context, rows, chosen, 2)  # (B, H, L, K)
        attention = self.all_probabilities(probs, top) if self.output_attention else None
        return context.transpose([0, 2, 1, 3]), attention

    def most_active(self, query: Tensor, key: Tensor) -> Tensor:
        """Return which queries look: int64 (B, H, U), in no order."""
        L, S = query.shape[2], key.shape[2]
        sample = paddle.randint(0, S, [L, sparse_count(self.factor, S)])  # (L, U)
        # not key[:, :, sample]: of a transposed tensor, Paddle indexes the axes as they were before
        sampled = paddle.index_select(key, sample.flatten(), 2)  # (B, H, L * U, K)
        sampled = sampled.reshape([*query.shape[:3], -1, query.shape[3]])  # (B, H, L, U, K)
        found = paddle.matmul(query.unsqueeze(-2), sampled.transpose([0, 1, 2, 4, 3])).squeeze(-2)
        activity = found.amax(-1) - found.sum(-1) / S  # (B, H, L)
        return paddle.topk(activity, sparse_count(self.factor, L), sorted=False)[1]

    def probabilities(self, query: Tensor, key: Tensor, top: Tensor) -> Tensor:
        """Return what the queries `top` (B, H, U) find: (B, H, U, S)."""
        S, K = key.shape[2], key.shape[3]
        rows = top.unsqueeze(-1).expand([*top.shape, K])  # (B, H, U, K)
        looking = paddle.take_along_axis(query, rows, 2)  # (B, H, U, K)
        scores = paddle.matmul(looking, key.transpose([0, 1, 3, 2])) * (1.0 / math.sqrt(K))
        if self.causal:
            hidden = paddle.arange(S) > top.unsqueeze(-1)  # (B, H, U, S)
            scores = scores.masked_fill(hidden, -math.inf)
        return F.softmax(scores, axis=-1)  # (B, H, U, S)

    def initial_context(self, value: Tensor, L: int) -> Tensor:
        """Return what a query gets that does not look: (B, H, L, K) of value (B, H, S, K)."""
        if self.causal:
            return paddle.cumsum(value, axis=2)
        return value.mean(2, keepdim=True).expand([-1, -1, L, -1])

    def all_probabilities(self, probs: Tensor, top: Tensor) -> Tensor:
        """Return (B, H, S, S): `probs` (B, H, U, S) in the rows `top`, 1 / S in the others."""
        B, H, _, S = probs.shape
        even = (paddle.ones([B, H, S, S]) / S).astype(probs.dtype)  # float32, in the original too
        return paddle.put_along_axis(even, top.unsqueeze(-1).expand(probs.shape), probs, 2)


class AttentionLayer(nn.Layer):
    """Projections around an attention."""

    def __init__(self, attention: nn.Layer, D: int, n_heads: int, mix: bool) -> None:
        super().__init__()
        self.inner_attention = attention
        self.n_heads, self.mix = n_heads, mix
        inner = D // n_heads * n_heads
        self.query_projection = linear(D, inner)
        self.key_projection = linear(D, inner)
        self.value_projection = linear(D, inner)
        self.out_projection = linear(inner, D)

    def split_heads(self, x: Tensor) -> Tensor:
        """Give each head its part of the features: (B, L, H * K) to (B, L, H, K)."""
        return x.reshape([x.shape[0], x.shape[1], self.n_heads, -1])

    def forward(self, x: Tensor, other: Tensor, mask: Any = None) -> Attention:
        """Attend from x (B, L, D) to other (B, S, D): (B, L, D), and the attention's second output."""
        B, L, _ = x.shape
        query = self.split_heads(self.query_projection(x))  # (B, L, H, K)
        key = self.split_heads(self.key_projection(other))  # (B, S, H, K)
        value = self.split_heads(self.value_projection(other))  # (B, S, H, K)
        context, attention = self.inner_attention(query, key, value, mask)  # (B, L, H, K)
        if self.mix:
            context = context.transpose([0, 2, 1, 3])  # (B, H, L, K), and yet read as (B, L, H * K)
        return self.out_projection(context.reshape([B, L, -1])), attention


class Layer(nn.Layer):
    """What both kinds of layer end with: a network that sees every position on its own."""

    def add_feed_forward(self, arguments: InformerArguments) -> None:
        """Make the network; after the attention, so that the parameters stand in the original's order."""
        D, width = arguments.d_model, arguments.width
        self.conv1 = conv1d(D, width, kernel_size=1)
        self.conv2 = conv1d(width, D, kernel_size=1)
        self.dropout = nn.Dropout(arguments.dropout)
        self.activation = F.relu if arguments.activation == "relu" else F.gelu

    def feed_forward(self, x: Tensor) -> Tensor:
        """Widen and narrow x (B, L, D): (B, L, D)."""
        wide = self.dropout(self.activation(self.conv1(x.transpose([0, 2, 1]))))  # (B, width, L)
        return self.dropout(self.conv2(wide).transpose([0, 2, 1]))  # (B, L, D)


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network."""

    def __init__(self, attention: AttentionLayer, arguments: InformerArguments) -> None:
        super().__init__()
        self.attention = attention
        self.add_feed_forward(arguments)
        self.norm1 = LayerNorm(arguments.d_model)
        self.norm2 = LayerNorm(arguments.d_model)

    def forward(self, x: Tensor) -> Attention:
        """Transform x (B, L, D): (B, L, D), and the attention's probabilities or None."""
        attended, attention = self.attention(x, x)  # (B, L, D)
        x = self.norm1(x + self.dropout(attended))  # (B, L, D)
        return self.norm2(x + self.feed_forward(x)), attention


class ConvLayer(nn.Layer):
    """Distilling: half of the positions, each the strongest of its neighbours."""

    def __init__(self, D: int) -> None:
        super().__init__()
        self.downConv = conv1d(D, D, kernel_size=3, padding=1, padding_mode="circular")
        self.norm = BatchNorm1D(D)
        self.activation = nn.ELU()
        self.maxPool = nn.MaxPool1D(kernel_size=3, stride=2, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        """Distil x (B, L, D): (B, (L + 1) // 2, D)."""
        x = self.norm(self.downConv(x.transpose([0, 2, 1])))  # (B, D, L)
        return self.maxPool(self.activation(x)).transpose([0, 2, 1])


class Encoder(nn.Layer):
    """Layers, with distilling between them if there are `conv_layers`."""

    def __init__(
        self, attn_layers: list[nn.Layer], conv_layers: list[nn.Layer] | None, D: int
    ) -> None:
        super().__init__()
        self.attn_layers = nn.LayerList(attn_layers)
        self.conv_layers = None if conv_layers is None else nn.LayerList(conv_layers)
        self.norm = LayerNorm(D)

    def forward(self, x: Tensor) -> tuple[Tensor, list[Tensor | None]]:
        """Encode x (B, L, D): (B, S, D), and what each layer's attention found."""
        attentions = []
        for index, layer in enumerate(self.attn_layers):
            x, attention = layer(x)
            attentions.append(attention)
            if self.conv_layers is not None and index < len(self.conv_layers):
                x = self.conv_layers[index](x)
        return self.norm(x), attentions


class EncoderStack(nn.Layer):
    """Encoders side by side: of the whole series, its last half, its last quarter, and so on."""

    def __init__(self, encoders: list[nn.Layer]) -> None:
        super().__init__()
        self.encoders = nn.LayerList(encoders)

    def forward(self, x: Tensor) -> tuple[Tensor, list[list[Tensor | None]]]:
        """Encode x (B, L, D): their outputs one after the other (B, S, D), and their attentions."""
        outputs, attentions = [], []
        for index, encoder in enumerate(self.encoders):
            length = x.shape[1] // 2**index
            output, attention = encoder(x[:, -length:])
            outputs.append(output)
            attentions.append(attention)
        return paddle.concat(outputs, axis=1), attentions


class DecoderLayer(Layer):
    """Self-attention, attention to the encoder's output, then the feed-forward network."""

    def __init__(
        self,
        self_attention: AttentionLayer,
        cross_attention: AttentionLayer,
        arguments: InformerArguments,
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.add_feed_forward(arguments)
        self.norm1 = LayerNorm(arguments.d_model)
        self.norm2 = LayerNorm(arguments.d_model)
        self.norm3 = LayerNorm(arguments.d_model)

    def forward(self, x: Tensor, encoded: Tensor, mask: Any = None) -> Tensor:
        """Transform x (B, L, D), given encoded (B, S, D): (B, L, D)."""
        x = self.norm1(x + self.dropout(self.self_attention(x, x, mask)[0]))  # (B, L, D)
        x = self.norm2(x + self.dropout(self.cross_attention(x, encoded)[0]))  # (B, L, D)
        return self.norm3(x + self.feed_forward(x))  # (B, L, D)


class Decoder(nn.Layer):
    """Layers, and a norm after the last."""

    def __init__(self, layers: list[nn.Layer], D: int) -> None:
        super().__init__()
        self.layers = nn.LayerList(layers)
        self.norm = LayerNorm(D)

    def forward(self, x: Tensor, encoded: Tensor, mask: Any = None) -> Tensor:
        """Decode x (B, L, D), given encoded (B, S, D): (B, L, D)."""
        for layer in self.layers:
            x = layer(x, encoded, mask)
        return self.norm(x)


def self_attention(arguments: InformerArguments, causal: bool) -> AttentionLayer:
    """Return the attention of a series to itself: the decoder's if causal, else the encoder's."""
    a = arguments
    returned = a.output_attention and not causal
    if a.attn == "prob":
        inner: nn.Layer = ProbAttention(causal, a.factor, a.dropout, returned)
    else:
        inner = FullAttention(causal, a.dropout, returned)
    return AttentionLayer(inner, a.d_model, a.n_heads, mix=a.mix and causal)


def encoder(arguments: InformerArguments, layers: int) -> Encoder:
    """Return an encoder of so many layers."""
    a = arguments
    attn_layers = [EncoderLayer(self_attention(a, causal=False), a) for _ in range(layers)]
    conv_layers = [ConvLayer(a.d_model) for _ in range(layers - 1)] if a.distil else None
    return Encoder(attn_layers, conv_layers, a.d_model)


def decoder_layer(arguments: InformerArguments) -> DecoderLayer:
    """Return a layer of the decoder; its attention to the encoder is full in any case."""
    a = arguments
    own = self_attention(a, causal=True)
    cross = AttentionLayer(FullAttention(False, a.dropout, False), a.d_model, a.n_heads, mix=False)
    return DecoderLayer(own, cross, a)


class Informer(nn.Layer):
    """Forecast a series from what is known of it.

    Arguments by position or name: see InformerArguments. Raises InformerError, a ValueError.
    """

    arguments_class = InformerArguments

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        self.arguments = a = self.arguments_class(*args, **kwargs)
        self.enc_embedding = DataEmbedding(a.enc_in, a)
        self.dec_embedding = DataEmbedding(a.dec_in, a)
        self.encoder = self.make_encoder(a)
        self.decoder = Decoder([decoder_layer(a) for _ in range(a.d_layers)], a.d_model)
        self.projection = linear(a.d_model, a.c_out)

    def make_encoder(self, arguments: InformerArguments) -> nn.Layer:
        """Return the encoder."""
        return encoder(arguments, arguments.e_layers)

    def forward(
        self,
        x_enc: Tensor,
        x_mark_enc: Tensor,
        x_dec: Tensor,
        x_mark_dec: Tensor,
        enc_self_mask: Any = None,
        dec_self_mask: Any = None,
        dec_enc_mask: Any = None,
    ) -> Tensor | tuple[Tensor, Sequence[Any]]:
        """Forecast the last out_len positions of the decoder's input: (B, out_len, c_out).

        x_enc (B, S, enc_in) is what is known, x_dec (B, L, dec_in) its end and zeros in the places
        to fill; the marks (B, length, columns) say when. dec_self_mask: bool (B, 1, L, L), True where
        hidden, used by full attention alone; the other masks have no effect, in the original too.
        With output_attention, also the encoder's attention probabilities, layer by layer.
        """
        self.arguments.check_inputs(x_enc, x_mark_enc, x_dec, x_mark_dec)
        encoded, attentions = self.encoder(self.enc_embedding(x_enc, x_mark_enc))  # (B, S', D)
        decoded = self.decoder(self.dec_embedding(x_dec, x_mark_dec), encoded, dec_self_mask)
        output = self.projection(decoded)[:, -self.arguments.out_len :]  # (B, out_len, c_out)
        return (output, attentions) if self.arguments.output_attention else output


class InformerStack(Informer):
    """Informer with an encoder for the whole series, one for its last half, and so on.

    Arguments by position or name: see InformerStackArguments.
    """

    arguments_class = InformerStackArguments

    def make_encoder(self, arguments: InformerArguments) -> nn.Layer:
        """Return the encoders, as a stack."""
        return EncoderStack([encoder(arguments, layers) for layers in arguments.e_layers])
