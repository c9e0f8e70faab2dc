"""Classes and functions of the port that take PyTorch's arguments, for layers that are passed around."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, get_overloads

from reprod_align.api.calls import ApiRow
from reprod_align.api.filling import fill
from reprod_align.porting.calls.names import find_object
from reprod_align.porting.calls.slots import is_literal

_WEIGHT_NORM: Final = '''
def {name}(module, name="weight", dim=0):
    """Split a weight into length and direction along PyTorch's axis; a linear layer's lies the other way."""
    turned = isinstance(module, paddle.nn.Linear) and name == "weight" and dim is not None
    return paddle.nn.utils.weight_norm(module, name, 1 - dim if turned else dim)
'''
_SCHEDULE: Final = '''
def {{name}}(optimizer, {given}, last_epoch=-1):
    """Give an optimizer the learning rates of PyTorch's {schedule}; Paddle's own is made before it."""
    schedule = paddle.optimizer.lr.{decay}(optimizer.get_lr(), {passed}, last_epoch)
    optimizer.set_lr_scheduler(schedule)
    return schedule
'''
_SCHEDULES: Final = {
    "LambdaLR": ("LambdaDecay", "lr_lambda"),
    "StepLR": ("StepDecay", "step_size, gamma=0.1"),
    "MultiStepLR": ("MultiStepDecay", "milestones, gamma=0.1"),
    "ExponentialLR": ("ExponentialDecay", "gamma"),
    "CosineAnnealingLR": ("CosineAnnealingDecay", "T_max, eta_min=0.0"),
}
"""PyTorch's schedule -> Paddle's, and what both take after the optimizer or the learning rate"""
ADAPTERS: Final = {
    **{
        f"torch.optim.lr_scheduler.{schedule}": _SCHEDULE.format(
            schedule=schedule, decay=decay, given=given, passed=re.sub(r"=[\d.]+", "", given)
        )
        for schedule, (decay, given) in _SCHEDULES.items()
    },
    "torch.optim.lr_scheduler.CosineAnnealingWarmRestarts": '''
def {name}(optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
    """Give an optimizer the learning rates of PyTorch's schedule; Paddle's own is made before it."""
    rate = optimizer.get_lr()
    schedule = paddle.optimizer.lr.CosineAnnealingWarmRestarts(rate, T_0, T_mult, eta_min, last_epoch)
    optimizer.set_lr_scheduler(schedule)
    return schedule
''',
    "torch.optim.lr_scheduler.LinearLR": '''
def {name}(optimizer, start_factor=1 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
    """Give an optimizer the learning rates of PyTorch's schedule; Paddle's own is made before it."""
    rate = optimizer.get_lr()
    schedule = paddle.optimizer.lr.LinearLR(rate, total_iters, start_factor, end_factor, last_epoch)
    optimizer.set_lr_scheduler(schedule)
    return schedule
''',
    "torch.optim.lr_scheduler.ReduceLROnPlateau": '''
def {name}(
    optimizer, mode="min", factor=0.1, patience=10, threshold=1e-4, threshold_mode="rel", cooldown=0,
    min_lr=0, eps=1e-8,
):
    """Give an optimizer PyTorch's schedule; Paddle's own is made before it."""
    schedule = paddle.optimizer.lr.ReduceOnPlateau(
        optimizer.get_lr(), mode, factor, patience, threshold, threshold_mode, cooldown, min_lr, eps
    )
    optimizer.set_lr_scheduler(schedule)
    return schedule
''',
    "torch.optim.lr_scheduler.OneCycleLR": '''
class {name}(paddle.optimizer.lr.OneCycleLR):
    """PyTorch's one cycle of an optimizer's learning rate; its momentum goes down while the rate goes up."""

    def __init__(
        self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
        anneal_strategy="cos", cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
        final_div_factor=1e4, three_phase=False, last_epoch=-1,
    ):
        steps = total_steps or epochs * steps_per_epoch
        start, end = max_lr / div_factor, max_lr / div_factor / final_div_factor
        self.optimizer, self.cycles = optimizer, cycle_momentum
        self.momenta, self.rising = (max_momentum, base_momentum), pct_start * steps - 1
        self.lows, self.high = (start, start if three_phase else end), max_lr
        super().__init__(
            max_lr, steps, div_factor, end, pct_start, anneal_strategy, three_phase, last_epoch
        )
        optimizer.set_lr_scheduler(self)

    def get_lr(self):
        rate = super().get_lr()
        if self.cycles:
            low = self.lows[self.last_epoch > self.rising]
            share = max(0.0, (rate - low) / (self.high - low))
            self.set_momentum(self.momenta[0] + share * (self.momenta[1] - self.momenta[0]))
        return rate

    def set_momentum(self, momentum):
        """Paddle has no public name for it; Adam's correction is by the power of each step's momentum."""
        made = self.optimizer
        name = "momentum" if hasattr(made, "_momentum") else "beta1"
        for power in made._accumulators.get("beta1_pow_acc", {{}}).values():
            steps = (power.log() / math.log(made._beta1)).round()
            power.set_value(momentum**steps)
        setattr(made, f"_{{name}}", momentum)
        for group in (made._default_dict, *made._param_groups):
            if isinstance(group, dict):
                group[name] = momentum
''',
    "torch.nn.modules.loss._Loss": '''
class {name}(paddle.nn.Layer):
    """The base of PyTorch's losses."""

    def __init__(self, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.reduction = reduction
''',
    "torch.nn.modules.loss._WeightedLoss": '''
class {name}(paddle.nn.Layer):
    """The base of PyTorch's losses with weights of classes."""

    def __init__(self, weight=None, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.register_buffer("weight", weight)
        self.reduction = reduction
''',
    "torch.ao.nn.quantized.modules.functional_modules.FloatFunctional": '''
class {name}(paddle.nn.Layer):
    """Operations that a quantized model would do with integers, on floats."""

    def add(self, x, y):
        return x + y

    def add_scalar(self, x, y):
        return x + y

    def add_relu(self, x, y):
        return paddle.nn.functional.relu(x + y)

    def mul(self, x, y):
        return x * y

    def mul_scalar(self, x, y):
        return x * y

    def matmul(self, x, y):
        return x @ y

    def cat(self, x, dim=0):
        return paddle.concat(x, axis=dim)
''',
    "torch.nn.LSTMCell": '''
class {name}(paddle.nn.LSTMCell):
    """An LSTM cell that returns the hidden and the cell state, as PyTorch's does."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        attr = None if bias else False
        super().__init__(input_size, hidden_size, bias_ih_attr=attr, bias_hh_attr=attr)

    def forward(self, input, hx=None):
        _, (hidden, cell) = super().forward(input, hx)
        return hidden, cell
''',
    "torch.nn.GRUCell": '''
class {name}(paddle.nn.GRUCell):
    """A GRU cell that returns the hidden state alone, as PyTorch's does."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        attr = None if bias else False
        super().__init__(input_size, hidden_size, bias_ih_attr=attr, bias_hh_attr=attr)

    def forward(self, input, hx=None):
        hidden, _ = super().forward(input, hx)
        return hidden
''',
    "torch.nn.CTCLoss": '''
class {name}(paddle.nn.Layer):
    """The CTC loss of log-probabilities (T, B, C), its integers as Paddle's kernel takes them."""

    def __init__(self, blank=0, reduction="mean", zero_infinity=False):
        super().__init__()
        self.blank, self.reduction = blank, reduction

    def forward(self, log_probs, targets, input_lengths, target_lengths):
        if targets.ndim == 1:
            targets = lay_in_rows(targets, target_lengths)
        return paddle.nn.functional.ctc_loss(
            log_probs, targets.astype("int32"), input_lengths.astype("int64"), target_lengths.astype("int64"),
            blank=self.blank, reduction=self.reduction,
        )
''',
    "torch.nn.EmbeddingBag": '''
class {name}(paddle.nn.Layer):
    """Rows of a table, joined over each bag: a row of 2-D input, or what lies between two offsets."""

    def __init__(
        self, num_embeddings, embedding_dim, max_norm=None, norm_type=2.0, scale_grad_by_freq=False,
        mode="mean", sparse=False, _weight=None, include_last_offset=False, padding_idx=None, device=None,
        dtype=None,
    ):
        super().__init__()
        normal = paddle.nn.initializer.Normal()
        self.weight = self.create_parameter([num_embeddings, embedding_dim], default_initializer=normal)
        self.mode, self.padding_idx, self.include_last_offset = mode, padding_idx, include_last_offset

    def forward(self, input, offsets=None, per_sample_weights=None):
        return embedding_bag(
            input, self.weight, offsets, self.mode, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )
''',
    "torch.nn.RNNCell": '''
class {name}(paddle.nn.SimpleRNNCell):
    """A recurrent cell that returns the hidden state alone, as PyTorch's does."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        attr = None if bias else False
        super().__init__(input_size, hidden_size, nonlinearity, bias_ih_attr=attr, bias_hh_attr=attr)

    def forward(self, input, hx=None):
        hidden, _ = super().forward(input, hx)
        return hidden
''',
    "torch.nn.RMSNorm": '''
class {name}(paddle.nn.Layer):
    """Division by the root of the mean square over the last axes; Paddle's kernel is for GPUs."""

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
        self.axes, self.eps = list(range(-len(shape), 0)), eps
        ones = paddle.nn.initializer.Constant(1.0)
        self.weight = self.create_parameter(shape, default_initializer=ones) if elementwise_affine else None

    def forward(self, x):
        eps = paddle.finfo(x.dtype).eps if self.eps is None else self.eps
        x = x * paddle.rsqrt((x * x).mean(axis=self.axes, keepdim=True) + eps)
        return x if self.weight is None else x * self.weight
''',
    "torch.distributions.Categorical": '''
class {name}(paddle.distribution.Categorical):
    """A choice among the classes of the last axis, with PyTorch's arguments, attributes and shapes."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        if logits is None:
            logits = paddle.log(probs / probs.sum(axis=-1, keepdim=True))
        logits = logits - paddle.logsumexp(logits, axis=-1, keepdim=True)  # its log_softmax ends at -64
        super().__init__(logits)
        self.logits = logits

    @property
    def probs(self):
        return self.logits.exp()

    @property
    def mode(self):
        return self.logits.argmax(axis=-1)

    def log_prob(self, value):
        value = value.astype("int64").unsqueeze(-1)
        shape = paddle.broadcast_shape(value.shape, [*self.logits.shape[:-1], 1])
        logits = self.logits.expand([*shape[:-1], self.logits.shape[-1]])
        return paddle.take_along_axis(logits, value.expand(shape), -1).squeeze(-1)

    def entropy(self):
        return -(self.probs * self.logits.clip(min=paddle.finfo(self.logits.dtype).min)).sum(axis=-1)

    def kl_divergence(self, other):
        return (self.probs * (self.logits - other.logits)).sum(axis=-1)

    def sample(self, sample_shape=()):
        probs = self.probs.detach()
        drawn = paddle.multinomial(
            probs.reshape([-1, probs.shape[-1]]), math.prod(sample_shape), replacement=True
        )
        return drawn.T.reshape([*sample_shape, *probs.shape[:-1]])
''',
    "torch.nn.utils.rnn.pad_sequence": '''
def {name}(sequences, batch_first=False, padding_value=0.0):
    """Stack sequences of several lengths, the shorter ones padded at their end."""
    longest = max(len(one) for one in sequences)
    padded = [
        paddle.concat([one, paddle.full([longest - len(one), *one.shape[1:]], padding_value, one.dtype)])
        for one in sequences
    ]
    return paddle.stack(padded, axis=0 if batch_first else 1)
''',
    "torch.nn.utils.weight_norm": _WEIGHT_NORM,
    "torch.nn.utils.parametrizations.weight_norm": _WEIGHT_NORM,
    "torch.nn.utils.rnn.PackedSequence": '''
class {name}(NamedTuple):
    """Sequences of several lengths: the first step of each, then the second of those that have one, ..."""

    data: paddle.Tensor
    batch_sizes: paddle.Tensor = None
    sorted_indices: paddle.Tensor = None
    unsorted_indices: paddle.Tensor = None
''',
    "torch.nn.utils.rnn.pack_padded_sequence": '''
def {name}(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack padded sequences, (T, B, ...) or (B, T, ...), the longest first."""
    lengths, order, back = paddle.to_tensor(lengths, dtype="int64"), None, None
    if not enforce_sorted:
        order = paddle.argsort(lengths, descending=True, stable=True)
        back = paddle.argsort(order)
        lengths = lengths.index_select(order)
        input = input.index_select(order, axis=0 if batch_first else 1)
    steps = paddle.arange(int(lengths.max())).unsqueeze(1)
    sizes = (lengths.unsqueeze(0) > steps).sum(axis=1)
    rows = (input[:size, at] if batch_first else input[at, :size] for at, size in enumerate(sizes.tolist()))
    return {PackedSequence}(paddle.concat(list(rows)), sizes, order, back)
''',
    "torch.nn.utils.rnn.pad_packed_sequence": '''
def {name}(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Return packed sequences padded, and their lengths."""
    sequence = {PackedSequence}(*sequence)
    sizes = sequence.batch_sizes.tolist()
    most, rest = sizes[0], sequence.data.shape[1:]
    rows = [
        paddle.concat([row, paddle.full([most - len(row), *rest], padding_value, row.dtype)])
        for row in paddle.split(sequence.data, sizes)
    ]
    after = (total_length or len(sizes)) - len(sizes)
    rows += [paddle.full([most, *rest], padding_value, sequence.data.dtype)] * after
    padded = paddle.stack(rows, axis=1 if batch_first else 0)
    lengths = (sequence.batch_sizes.unsqueeze(1) > paddle.arange(most)).sum(axis=0)
    if sequence.unsorted_indices is None:
        return padded, lengths
    back = sequence.unsorted_indices
    return padded.index_select(back, axis=0 if batch_first else 1), lengths.index_select(back)
''',
    "torch.nn.utils.rnn.pack_sequence": '''
def {name}(sequences, enforce_sorted=True):
    """Pack sequences of several lengths."""
    lengths = [len(one) for one in sequences]
    return {pack_padded_sequence}({pad_sequence}(sequences), lengths, enforce_sorted=enforce_sorted)
''',
    "torch.nn.TransformerEncoderLayer": '''
class {name}(paddle.nn.Layer):
    """PyTorch's encoder layer: its arguments, and its names of parameters."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-05,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):
        super().__init__()
        attr = None if bias else False
        self.self_attn = paddle.compat.nn.MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first
        )
        self.linear1 = paddle.nn.Linear(d_model, dim_feedforward, bias_attr=attr)
        self.dropout = paddle.nn.Dropout(dropout)
        self.linear2 = paddle.nn.Linear(dim_feedforward, d_model, bias_attr=attr)
        self.norm_first = norm_first
        self.norm1 = paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr)
        self.norm2 = paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr)
        self.dropout1 = paddle.nn.Dropout(dropout)
        self.dropout2 = paddle.nn.Dropout(dropout)
        named = isinstance(activation, str)
        self.activation = getattr(paddle.nn.functional, activation) if named else activation

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        masks = {{"attn_mask": src_mask, "key_padding_mask": src_key_padding_mask}}
        if self.norm_first:
            src = src + self.attend(self.norm1(src), masks)
            return src + self.feed(self.norm2(src))
        src = self.norm1(src + self.attend(src, masks))
        return self.norm2(src + self.feed(src))

    def attend(self, x, masks):
        return self.dropout1(self.self_attn(x, x, x, need_weights=False, **masks)[0])

    def feed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(x)))))
''',
    "torch.nn.TransformerDecoderLayer": '''
class {name}(paddle.nn.Layer):
    """PyTorch's decoder layer: its arguments, and its names of parameters."""

    def __init__(
        self, d_model, nhead, dim_feedforward=2048, dropout=0.1, activation="relu", layer_norm_eps=1e-05,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):
        super().__init__()
        attr = None if bias else False
        attention = {{"dropout": dropout, "bias": bias, "batch_first": batch_first}}
        self.self_attn = paddle.compat.nn.MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = paddle.compat.nn.MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = paddle.nn.Linear(d_model, dim_feedforward, bias_attr=attr)
        self.dropout = paddle.nn.Dropout(dropout)
        self.linear2 = paddle.nn.Linear(dim_feedforward, d_model, bias_attr=attr)
        self.norm_first = norm_first
        self.norm1 = paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr)
        self.norm2 = paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr)
        self.norm3 = paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr)
        self.dropout1 = paddle.nn.Dropout(dropout)
        self.dropout2 = paddle.nn.Dropout(dropout)
        self.dropout3 = paddle.nn.Dropout(dropout)
        named = isinstance(activation, str)
        self.activation = getattr(paddle.nn.functional, activation) if named else activation

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None,
        memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False,
    ):
        own = {{"attn_mask": tgt_mask, "key_padding_mask": tgt_key_padding_mask}}
        across = {{"attn_mask": memory_mask, "key_padding_mask": memory_key_padding_mask}}
        if self.norm_first:
            x = self.norm1(tgt)
            tgt = tgt + self.dropout1(self.self_attn(x, x, x, need_weights=False, **own)[0])
            x = self.norm2(tgt)
            tgt = tgt + self.dropout2(self.multihead_attn(x, memory, memory, need_weights=False, **across)[0])
            return tgt + self.feed(self.norm3(tgt))
        tgt = self.norm1(tgt + self.dropout1(self.self_attn(tgt, tgt, tgt, need_weights=False, **own)[0]))
        x = self.multihead_attn(tgt, memory, memory, need_weights=False, **across)[0]
        tgt = self.norm2(tgt + self.dropout2(x))
        return self.norm3(tgt + self.feed(tgt))

    def feed(self, x):
        return self.dropout3(self.linear2(self.dropout(self.activation(self.linear1(x)))))
''',
    "torch.nn.TransformerEncoder": '''
class {name}(paddle.nn.Layer):
    """A stack of copies of an encoder layer, called as PyTorch's is."""

    def __init__(self, encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True):
        from copy import deepcopy

        super().__init__()
        self.layers = paddle.nn.LayerList([deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask)
        return src if self.norm is None else self.norm(src)
''',
    "torch.nn.TransformerDecoder": '''
class {name}(paddle.nn.Layer):
    """A stack of copies of a decoder layer, called as PyTorch's is."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        from copy import deepcopy

        super().__init__()
        self.layers = paddle.nn.LayerList([deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, **masks):
        for layer in self.layers:
            tgt = layer(tgt, memory, **masks)
        return tgt if self.norm is None else self.norm(tgt)
''',
    "torch.nn.Transformer": '''
class {name}(paddle.nn.Layer):
    """An encoder and a decoder, with PyTorch's arguments."""

    def __init__(
        self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
        dropout=0.1, activation="relu", custom_encoder=None, custom_decoder=None, layer_norm_eps=1e-05,
        batch_first=False, norm_first=False, bias=True, device=None, dtype=None,
    ):
        super().__init__()
        given = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first,
            bias,
        )
        attr = None if bias else False
        self.encoder = custom_encoder or {TransformerEncoder}(
            {TransformerEncoderLayer}(*given),
            num_encoder_layers,
            paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr),
        )
        self.decoder = custom_decoder or {TransformerDecoder}(
            {TransformerDecoderLayer}(*given),
            num_decoder_layers,
            paddle.nn.LayerNorm(d_model, layer_norm_eps, bias_attr=attr),
        )
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
        tgt_key_padding_mask=None, memory_key_padding_mask=None, **causal,
    ):
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask)
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask, memory_key_padding_mask=memory_key_padding_mask,
        )
''',
}
"""what a row cannot say; `{Name}` is another one of torch.nn"""

_RECURRENT: Final = '''
class {name}({base}):
    """A recurrent layer that takes packed sequences too, and gives them back."""

    def forward(self, input, hx=None):
        if not isinstance(input, tuple):
            return super().forward(input, hx)
        packed, batch_first = {PackedSequence}(*input), not self.time_major
        padded, lengths = {pad_packed_sequence}(packed, batch_first)
        made, state = super().forward(padded, hx, lengths)
        if packed.sorted_indices is not None:
            made = made.index_select(packed.sorted_indices, axis=0 if batch_first else 1)
            lengths = lengths.index_select(packed.sorted_indices)
        return packed._replace(data={pack_padded_sequence}(made, lengths, batch_first).data), state
'''
_ADAPTIVE_POOL: Final = '''
class {{name}}({{base}}):
    """A pool that averages in its input's dtype: Paddle's backward pass divides in float32."""

    def forward(self, x):
        return adaptive_average(x, {axes}, self.{size})
'''
_AVERAGE_POOL: Final = '''
class {{name}}({{base}}):
    """A pool that averages in its input's dtype: Paddle's backward pass divides in float32."""

    def forward(self, x):
        return average_pool(
            x, {axes}, self.{size}, self.stride, self.padding, self.ceil_mode, not self.exclusive, {divisor}
        )
'''
_UPSAMPLE: Final = '''
class {name}({base}):
    """A resizing that computes in its input's dtype: Paddle's kernels hold the weights in float32."""

    def forward(self, x):
        return resize_in_dtype(x, self.size, self.scale_factor, self.mode, self.align_corners)
'''
_BATCH_NORM: Final = '''
class {name}({base}):
    """A batch norm in its input's dtype, which takes its batch's statistics where it keeps none.

    Paddle's kernel rounds epsilon to float32.
    """

    def forward(self, x):
        from_batch = self.training or self._use_global_stats is False
        return batch_norm_in_dtype(
            x, self._mean, self._variance, self.weight, self.bias, from_batch,
            (1 - self._momentum) * self.training, self._epsilon,
        )
'''
_INSTANCE_NORM: Final = '''
class {name}({base}):
    """An instance norm in its input's dtype: Paddle's kernel rounds epsilon to float32."""

    def forward(self, x):
        axes, shape = list(range(2, x.ndim)), [1, -1] + [1] * (x.ndim - 2)
        x = standardize(x, axes, self._epsilon)
        x = x if self.scale is None else x * self.scale.reshape(shape)
        return x if self.bias is None else x + self.bias.reshape(shape)
'''
_ACTIVATION: Final = '''
class {{name}}({{base}}):
    """{layer} in its input's dtype: Paddle's kernel holds the constants in float32."""

    def forward(self, x):
        return {result}
'''
_ACTIVATIONS: Final = {
    "ELU": "paddle.where(x > 0, x, self._alpha * paddle.expm1(x.clip(max=0)))",
    "Hardtanh": "paddle.clip(x, self._min, self._max)",
    "SELU": "self._scale * paddle.where(x > 0, x, self._alpha * paddle.expm1(x.clip(max=0)))",
    "Softshrink": "paddle.sign(x) * paddle.nn.functional.relu(x.abs() - self._threshold)",
}
"""a layer -> its result, in code that computes in the input's dtype"""
VARIANTS: Final = {
    **{
        f"torch.nn.{layer}": _ACTIVATION.format(layer=layer, result=result)
        for layer, result in _ACTIVATIONS.items()
    },
    "torch.nn.AvgPool1d": _AVERAGE_POOL.format(axes=1, size="kernel_size", divisor=None),
    "torch.nn.AvgPool2d": _AVERAGE_POOL.format(axes=2, size="ksize", divisor="self.divisor"),
    "torch.nn.AvgPool3d": _AVERAGE_POOL.format(axes=3, size="ksize", divisor="self.divisor"),
    "torch.nn.AdaptiveAvgPool1d": _ADAPTIVE_POOL.format(axes=1, size="output_size"),
    "torch.nn.AdaptiveAvgPool2d": _ADAPTIVE_POOL.format(axes=2, size="_output_size"),
    "torch.nn.AdaptiveAvgPool3d": _ADAPTIVE_POOL.format(axes=3, size="_output_size"),
    "torch.nn.Hardsigmoid": '''
class {name}({base}):
    """Hardsigmoid as PyTorch computes it: in its input's dtype."""

    def forward(self, x):
        return hardsigmoid_in_dtype(x)
''',
    "torch.nn.Upsample": _UPSAMPLE,
    "torch.nn.UpsamplingBilinear2d": _UPSAMPLE.replace(
        "self.mode, self.align_corners", '"bilinear", True'
    ),
    "torch.nn.ZeroPad2d": '''
class {name}({base}):
    """A pad that cuts where its number is negative, which Paddle refuses."""

    def forward(self, x):
        return pad_or_cut(x, self.padding)
''',
    "torch.nn.BatchNorm1d": _BATCH_NORM,
    "torch.nn.InstanceNorm1d": _INSTANCE_NORM,
    "torch.nn.BatchNorm2d": _BATCH_NORM,
    "torch.nn.InstanceNorm2d": _INSTANCE_NORM,
    "torch.nn.BatchNorm3d": _BATCH_NORM,
    "torch.nn.InstanceNorm3d": _INSTANCE_NORM,
    "torch.nn.CrossEntropyLoss": '''
class {name}({base}):
    """A loss whose mean is over the targets that count, and that smooths labels in its input's dtype."""

    def forward(self, input, label):
        if label.is_floating_point():
            return super().forward(input, label)
        return cross_entropy(
            input, label, self.ignore_index, self.reduction, self.label_smoothing, self.axis, self.weight
        )
''',
    "torch.nn.NLLLoss": '''
class {name}({base}):
    """A loss whose own sum is not used: Paddle's writes beyond its result where labels are ignored."""

    def forward(self, input, label):
        return nll_loss(input, label, self._weight, self._ignore_index, self._reduction)
''',
    "torch.nn.KLDivLoss": '''
class {name}({base}):
    """A divergence whose target's gradient is PyTorch's."""

    def forward(self, input, label):
        return kl_div(input, label, self.reduction, self.log_target)
''',
    "torch.nn.Embedding": '''
class {name}({base}):
    """An embedding whose row of padding_idx is the table's and takes no gradient; Paddle gives zeros."""

    def forward(self, input):
        return embed(input, self.weight, None if self._padding_idx == -1 else self._padding_idx)
''',
    "torch.nn.Bilinear": '''
class {name}({base}):
    """A bilinear layer over the last axis of inputs with any others; Paddle's takes two axes."""

    def forward(self, x1, x2):
        made = paddle.einsum("...i,kij,...j->...k", x1, self.weight, x2)
        return made if self.bias is None else made + self.bias.squeeze(0)
''',
    "torch.nn.LSTM": _RECURRENT,
    "torch.nn.GRU": _RECURRENT,
    "torch.nn.RNN": _RECURRENT,
    "torch.nn.LayerNorm": '''
class {name}({base}):
    """A layer norm in its input's dtype: Paddle rounds epsilon; a frozen weight's gradient differs."""

    def forward(self, x):
        shape = list(self._normalized_shape)
        x = standardize(x, list(range(-len(shape), 0)), self._epsilon)
        x = x if self.weight is None else x * self.weight.reshape(shape)
        return x if self.bias is None else x + self.bias.reshape(shape)
''',
    "torch.nn.GroupNorm": '''
class {name}({base}):
    """A group norm in its input's dtype: Paddle rounds epsilon; without a weight its gradient differs."""

    def forward(self, x):
        shape = [1, -1] + [1] * (x.ndim - 2)
        groups = x.reshape([x.shape[0], self._num_groups, -1])
        x = standardize(groups, -1, self._epsilon).reshape(x.shape)
        x = x if self.weight is None else x * self.weight.reshape(shape)
        return x if self.bias is None else x + self.bias.reshape(shape)
''',
}
"""layers of Paddle's with another forward pass, for where their own does not give what was recorded"""
RESERVED: Final = frozenset(
    f"torch.nn.{one}" for one in (
        "LayerNorm", "GroupNorm", *(f"{kind}Norm{n}d" for kind in ("Batch", "Instance") for n in (1, 2, 3)),
    )
)  # fmt: skip
"""variants that serve precision alone, where Paddle's own layer agrees as far as float32 holds it"""


HELPERS: Final = {
    "embed": '''
def embed(input, weight, padding_idx=None):
    """Return the rows of a table; the row of padding_idx gets no gradient, where Paddle gives zeros."""
    rows = paddle.nn.functional.embedding(input, weight)
    if padding_idx is None:
        return rows
    is_pad = (input == padding_idx % weight.shape[0]).unsqueeze(-1)
    return paddle.where(is_pad, rows.detach(), rows)
''',
    "embedding_bag": '''
def embedding_bag(
    input, weight, offsets=None, mode="mean", per_sample_weights=None, include_last_offset=False,
    padding_idx=None,
):
    """Rows of a table, joined over each bag: a row of 2-D input, or what lies between two offsets."""
    bags, weights = input, per_sample_weights
    if offsets is not None:
        ends = offsets.tolist() + ([] if include_last_offset else [len(input)])
        bags = [input[first:last] for first, last in zip(ends, ends[1:])]
        weights = None if weights is None else [weights[first:last] for first, last in zip(ends, ends[1:])]
    made = []
    for at, bag in enumerate(bags):
        rows = paddle.nn.functional.embedding(bag, weight)
        rows = rows if weights is None else rows * weights[at].unsqueeze(-1)
        kept = rows if padding_idx is None else rows[bag != padding_idx]
        made.append(getattr(paddle, mode)(kept, axis=0) if len(kept) else paddle.zeros_like(weight[0]))
    return paddle.stack(made)
''',
    "bce": '''
def bce(input, label, weight=None, reduction="mean"):
    """Binary cross entropy that gives its label a gradient, too; Paddle's kernel gives none."""
    right, wrong = paddle.log(input).clip(min=-100), paddle.log1p(-input).clip(min=-100)
    loss = -(label * right + (1 - label) * wrong)
    loss = loss if weight is None else loss * weight
    return loss if reduction == "none" else getattr(loss, reduction)()
''',
    "bce_with_logits": '''
def bce_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None):
    """Binary cross entropy of logits that gives its label a gradient, too; Paddle's kernel gives none."""
    rest = paddle.nn.functional.softplus(-logit, threshold=1e9)
    rest = rest if pos_weight is None else rest * ((pos_weight - 1) * label + 1)
    loss = (1 - label) * logit + rest
    loss = loss if weight is None else loss * weight
    return loss if reduction == "none" else getattr(loss, reduction)()
''',
    "embedding_from": '''
def embedding_from(embeddings, freeze=True, padding_idx=None):
    """Return an embedding with this table. If it is trained, Paddle's row of padding is zero."""
    layer = paddle.nn.Embedding(*embeddings.shape, padding_idx=None if freeze else padding_idx)
    layer.weight.set_value(embeddings.astype(layer.weight.dtype))
    layer.weight.stop_gradient = freeze
    return layer
''',
    "nll_loss": '''
def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    """Negative log likelihood; Paddle's own sum writes beyond its result where labels are ignored."""
    loss = paddle.nn.functional.nll_loss(input, target, weight, ignore_index, "none")
    if reduction != "mean":
        return loss if reduction == "none" else loss.sum()
    is_counted = (target != ignore_index).astype(loss.dtype)
    if weight is not None:
        label = paddle.where(target != ignore_index, target, paddle.zeros_like(target))
        is_counted = is_counted * weight[label]
    return loss.sum() / is_counted.sum()
''',
    "cross_entropy": '''
def cross_entropy(
    input, target, ignore_index=-100, reduction="mean", label_smoothing=0.0, axis=-1, weight=None
):
    """Cross entropy, its mean over the targets that count; Paddle counts more, and smooths in float32."""
    loss = paddle.nn.functional.cross_entropy(
        input, target, ignore_index=ignore_index, reduction="none", axis=axis
    )
    is_counted = (target != ignore_index).astype(loss.dtype)
    share = is_counted if weight is None else is_counted * weight[target.clip(min=0)]
    loss = loss * share
    if label_smoothing > 0:
        logs = paddle.moveaxis(paddle.nn.functional.log_softmax(input, axis), axis, -1)
        even = -(logs if weight is None else logs * weight).mean(-1) * is_counted
        loss = (1 - label_smoothing) * loss + label_smoothing * even
    if reduction == "none":
        return loss
    return loss.sum() / share.sum() if reduction == "mean" else loss.sum()
''',
    "attend": '''
def attend(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Scaled dot-product attention (..., L, E); a query that may attend to nothing gets zeros."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = (one.repeat_interleave(groups, axis=-3) for one in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = paddle.ones(scores.shape[-2:], dtype="bool").tril()
    if attn_mask is not None and attn_mask.dtype == paddle.bool:
        scores = paddle.where(attn_mask, scores, paddle.full_like(scores, float("-inf")))
    elif attn_mask is not None:
        scores = scores + attn_mask
    is_idle = paddle.isinf(scores).all(axis=-1, keepdim=True)
    scores = paddle.where(is_idle, paddle.zeros_like(scores), scores)
    weights = paddle.nn.functional.softmax(scores, axis=-1)
    weights = paddle.where(is_idle, paddle.zeros_like(weights), weights)
    return paddle.nn.functional.dropout(weights, dropout_p) @ value
''',
    "pad_or_cut": '''
def pad_or_cut(x, pad, mode="constant", value=0.0):
    """Pad axes from the last one on, (first, last) of each; a negative number cuts, which Paddle refuses."""
    for at, (first, last) in enumerate(zip(pad[::2], pad[1::2])):
        axis = x.ndim - 1 - at
        x = paddle.slice(x, [axis], [max(-first, 0)], [x.shape[axis] + min(last, 0)])
    return paddle.compat.nn.functional.pad(x, [max(one, 0) for one in pad], mode=mode, value=value)
''',
    "average_windows": '''
def average_windows(x, windows):
    """Average the last axes over windows (first, last, divisor): Paddle's gradient divides in float32."""
    for axis, rows in enumerate(windows, x.ndim - len(windows)):
        every = range(x.shape[axis])
        weight = [[(first <= at < last) / divisor for at in every] for first, last, divisor in rows]
        weight = paddle.to_tensor(weight, dtype=x.dtype)
        x = paddle.moveaxis(paddle.moveaxis(x, axis, -1) @ weight.T, -1, axis)
    return x
''',
    "average_pool": '''
def average_pool(
    x, axes, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
    divisor_override=None,
):
    """Average pooling over the last axes, in the input's dtype."""

    def of(value, axis):
        return value[axis % len(value)] if isinstance(value, (list, tuple)) else value

    windows = []
    for axis, size in enumerate(x.shape[-axes:]):
        wide, pad = of(kernel_size, axis), of(padding, axis)
        step, end = of(stride, axis) or wide, size + pad
        starts = [
            start for start in range(-pad, end, step)
            if start + wide <= end or (ceil_mode and start - step + wide < end and start < size)
        ]
        rows = []
        for start in starts:
            first, last = max(start, 0), min(start + wide, size)
            divisor = min(start + wide, end) - start if count_include_pad else last - first
            rows.append((first, last, 1 if divisor_override else divisor))
        windows.append(rows)
    return average_windows(x, windows) / (divisor_override or 1)
''',
    "adaptive_average": '''
def adaptive_average(x, axes, output_size):
    """Average pooling to a size of the last axes, in the input's dtype; None leaves an axis as it is."""
    windows = []
    for axis, size in enumerate(x.shape[-axes:]):
        count = output_size[axis] if isinstance(output_size, (list, tuple)) else output_size
        count = size if count is None else count
        bounds = [(at * size // count, -(-(at + 1) * size // count)) for at in range(count)]
        windows.append([(first, last, last - first) for first, last in bounds])
    return average_windows(x, windows)
''',
    "resize_in_dtype": '''
def resize_in_dtype(
    x, size=None, scale_factor=None, mode="nearest", align_corners=False, antialias=False
):
    """Resize (B, C, ...) axis by axis in the input's dtype: Paddle's kernels hold the weights in float32."""

    def of(value, axis):
        return value[axis - 2] if isinstance(value, (list, tuple)) else value

    for axis in range(2, x.ndim):
        before, factor = x.shape[axis], of(scale_factor, axis)
        after = int(before * factor) if size is None else int(of(size, axis))
        scale = before / after if factor is None else 1 / factor
        places = paddle.arange(after, dtype=x.dtype)
        if mode.startswith("nearest"):
            rows = (places + (0.5 if mode == "nearest-exact" else 0.0)) * scale
            x = x.index_select(rows.floor().astype("int64").clip(max=before - 1), axis)
            continue
        step = (before - 1) / max(after - 1, 1)
        places = places * step if align_corners else (places + 0.5) * scale - 0.5
        beyond = 0 if antialias else 2  # columns that repeat the first and the last one
        columns = paddle.arange(-beyond, before + beyond)
        far = (columns.astype(x.dtype) - places.unsqueeze(1)).abs()
        far = far / max(scale, 1.0) if antialias else far
        weight = (1 - far).clip(min=0)
        if mode == "bicubic":
            a = -0.5 if antialias else -0.75
            near = ((a + 2) * far - (a + 3)) * far**2 + 1
            weight = paddle.where(far < 1, near, a * (((far - 5) * far + 8) * far - 4))
            weight = weight * (far < 2).astype(x.dtype)
        weight = weight / weight.sum(axis=1, keepdim=True)
        x = x.index_select(columns.clip(0, before - 1), axis)
        x = paddle.moveaxis(paddle.moveaxis(x, axis, -1) @ weight.T, -1, axis)
    return x
''',
    "multiply_sparse": '''
def multiply_sparse(matrix, x):
    """Multiply a sparse matrix of coordinates by a dense one (N, C): Paddle's kernel is for GPUs."""
    rows, columns = matrix.indices()
    terms = matrix.values().unsqueeze(-1) * x.index_select(columns)
    return paddle.zeros([matrix.shape[0], x.shape[1]], terms.dtype).index_add(rows, 0, terms)
''',
    "stride_over": '''
def stride_over(x, size, stride, storage_offset=0):
    """Read a contiguous tensor by steps; Paddle's own loses gradients where the places overlap."""
    index = paddle.to_tensor(storage_offset or 0)
    for count, step in zip(size, stride):
        index = index.unsqueeze(-1) + step * paddle.arange(count)
    return x.flatten().index_select(index.flatten()).reshape(size)
''',
    "lay_in_rows": '''
def lay_in_rows(targets, lengths):
    """Lay targets that follow each other in rows with zeros behind, as Paddle's CTC loss takes them."""
    rows = paddle.zeros([len(lengths), int(lengths.max())], targets.dtype)
    rows[paddle.arange(rows.shape[1]) < lengths.unsqueeze(1)] = targets
    return rows
''',
    "whole_power": '''
def whole_power(x, exponent):
    """Raise whole numbers to whole powers; Paddle's own loses digits beyond 2**53."""
    zeros = paddle.zeros_like(x * exponent)
    base, left, made = x + zeros, exponent + zeros, 1 + zeros
    while left.max() > 0:
        made, base, left = paddle.where(left % 2 == 1, made * base, made), base * base, left // 2
    return made
''',
    "spread_over_grid": '''
def spread_over_grid(*tensors, indexing="ij"):
    """Coordinates of a grid; Paddle's own ends the process where one of them alone needs a gradient."""
    sizes, made = [one.size for one in tensors], []
    for at, one in enumerate(tensors):
        one = one.reshape([-1 if at == axis else 1 for axis in range(len(sizes))]).expand(sizes)
        made.append(one.transpose([1, 0, *range(2, len(sizes))]) if indexing == "xy" else one)
    return made
''',
    "kl_div": '''
def kl_div(input, target, reduction="mean", log_target=False):
    """Kullback-Leibler divergence from log-probabilities; a probability of zero adds nothing."""
    if log_target:
        loss = paddle.exp(target) * (target - input)
    else:
        loss = target * (paddle.where(target > 0, target, paddle.ones_like(target)).log() - input)
    if reduction == "batchmean":
        return loss.sum() / input.shape[0]
    return loss if reduction == "none" else getattr(loss, reduction)()
''',
    "find_unique": '''
def find_unique(x, return_inverse=False, return_counts=False, axis=None):
    """The sorted values of a tensor, or slices along an axis; which each is, and how often each occurs."""
    known = x.astype("int32") if x.dtype == paddle.bool else x  # the kernel knows no booleans
    values, inverse, counts = paddle.unique(
        known, return_inverse=True, return_counts=True, axis=axis
    )
    made = [values.astype(x.dtype)]
    if return_inverse:
        made.append(inverse.reshape(x.shape) if axis is None else inverse)
    if return_counts:
        made.append(counts)
    return tuple(made) if made[1:] else made[0]
''',
    "count_fans": '''
def count_fans(weight):
    """How many numbers of a weight (out, in, ...) meet in one output, and how many one input goes to."""
    inside = weight[0, 0].size
    return weight.shape[1] * inside, weight.shape[0] * inside
''',
    "attend_in_heads": '''
def attend_in_heads(
    query, key, value, num_heads, in_proj_weight, in_proj_bias, dropout_p, out_proj_weight, out_proj_bias,
    training=True, key_padding_mask=None, need_weights=True, attn_mask=None,
    use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None,
    average_attn_weights=True,
):
    """Multi-head attention over (L, B, E), from PyTorch's weights (out, in), and its weights (B, L, S)."""
    weights = [q_proj_weight, k_proj_weight, v_proj_weight]
    if not use_separate_proj_weight:
        weights = in_proj_weight.chunk(3)
    biases = [None] * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
    length, batch, width = query.shape

    def split(x, weight, bias):
        x = x @ weight.T if bias is None else x @ weight.T + bias
        return x.reshape([x.shape[0], batch * num_heads, -1]).transpose([1, 0, 2])

    q, k, v = (split(*parts) for parts in zip((query, key, value), weights, biases))
    scores = q @ k.mT * (q.shape[-1] ** -0.5)
    hidden = paddle.full([], float("-inf"), scores.dtype)
    if attn_mask is not None:
        is_bool = attn_mask.dtype == paddle.bool
        scores = paddle.where(attn_mask, hidden, scores) if is_bool else scores + attn_mask
    if key_padding_mask is not None:
        left_out = key_padding_mask.unsqueeze(1).repeat_interleave(num_heads, axis=0)
        is_bool = key_padding_mask.dtype == paddle.bool
        scores = paddle.where(left_out, hidden, scores) if is_bool else scores + left_out
    shares = paddle.nn.functional.softmax(scores, axis=-1)
    made = paddle.nn.functional.dropout(shares, dropout_p, training=training) @ v
    made = made.transpose([1, 0, 2]).reshape([length, batch, width]) @ out_proj_weight.T
    made = made if out_proj_bias is None else made + out_proj_bias
    shares = shares.reshape([batch, num_heads, length, -1])
    return made, (shares.mean(axis=1) if average_attn_weights else shares) if need_weights else None
''',
    "name_type": '''
def name_type(x):
    """The class that PyTorch names a tensor's dtype by: "torch.HalfTensor" for float16."""
    names = {
        "float16": "Half", "float32": "Float", "float64": "Double", "bfloat16": "BFloat16", "int64": "Long",
        "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
    }
    return f"torch.{names[str(x.dtype).rpartition('.')[2]]}Tensor"
''',
    "batch_norm_in_dtype": '''
def batch_norm_in_dtype(
    x, mean, variance, weight=None, bias=None, training=False, momentum=0.1, epsilon=1e-5
):
    """A batch norm in its input's dtype, its momentum and running statistics PyTorch's."""
    axes, shape = [0, *range(2, x.ndim)], [1, -1] + [1] * (x.ndim - 2)
    running = mean, variance
    if training:
        mean = x.mean(axis=axes)
        variance = (x - mean.reshape(shape)).square().mean(axis=axes)
        count = x.size // x.shape[1]
        unbiased = variance * (count / max(count - 1, 1))
        for kept, new in zip(running, (mean, unbiased)):
            if kept is not None:
                kept.set_value(kept * (1 - momentum) + new.detach() * momentum)
    x = (x - mean.reshape(shape)) * paddle.rsqrt(variance.reshape(shape) + epsilon)
    x = x if weight is None else x * weight.reshape(shape)
    return x if bias is None else x + bias.reshape(shape)
''',
    "standardize": '''
def standardize(x, axes, epsilon):
    """Give zero mean and unit variance over axes, epsilon in the input's dtype: Paddle's norms round it."""
    x = x - x.mean(axis=axes, keepdim=True)
    return x * paddle.rsqrt(x.square().mean(axis=axes, keepdim=True) + epsilon)
''',
    "hardsigmoid_in_dtype": '''
def hardsigmoid_in_dtype(x):
    """Hardsigmoid in the input's dtype, with the kernel's gradient: PyTorch's too takes 1/6 in float32."""
    kernel = paddle.nn.functional.hardsigmoid(x, slope=1 / 6)
    return kernel + (paddle.clip(x / 6 + 0.5, 0, 1) - kernel).detach()
''',
    "drawn": '''
def drawn(tensor, draw, *arguments, **named):
    """Draw a tensor's values in place, and return it."""
    draw(tensor, *arguments, **named)
    return tensor
''',
    "vmap": '''
def vmap(function, in_dims=0, out_dims=0):
    """Return a function that is called once for each index of an axis of its arguments; None: all of one."""

    def mapped(*arguments):
        axes = in_dims if isinstance(in_dims, (list, tuple)) else [in_dims] * len(arguments)
        rows = [one if at is None else one.unbind(at) for one, at in zip(arguments, axes)]
        count = next(len(row) for row, at in zip(rows, axes) if at is not None)
        made = [
            function(*(row if at is None else row[n] for row, at in zip(rows, axes)))
            for n in range(count)
        ]
        if isinstance(made[0], tuple):
            return tuple(paddle.stack(one, axis=out_dims) for one in zip(*made))
        return paddle.stack(made, axis=out_dims)

    return mapped
''',
    "set_items": '''
def set_items(x, index, value):
    """Do `x[index] = value`, whose gradient of the value Paddle leaves out where the index has tensors."""
    places, axes = paddle.arange(x.size).reshape(x.shape)[index], []
    for size in reversed(x.shape):
        axes.insert(0, places % size)
        places = places // size
    x.index_put_(tuple(axes), value.astype(x.dtype).expand(places.shape))
''',
    "drop_biases": '''
def drop_biases(layer):
    """Take the biases off a recurrent layer: Paddle builds none without, and its kernel asks for some."""
    zeros = {id(one): paddle.zeros_like(one) for name, one in layer.named_parameters() if "bias" in name}
    for part in layer.sublayers(include_self=True):
        for name in [one for one in part._parameters if "bias" in one]:
            del part._parameters[name]
    for one in zeros.values():
        one.stop_gradient = False  # its gradient is computed, and nothing reads it
    layer._all_weights = [zeros.get(id(one), one) for one in layer._all_weights]
    return layer
''',
    "average_statistics": '''
def average_statistics(norm):
    """Make a batch norm's running statistics the means of all batches so far, as momentum=None does."""

    def count(norm, inputs):
        if norm.training:
            norm.batches += 1
            norm._momentum = 1 - 1 / norm.batches

    norm.batches = 0
    norm.register_forward_pre_hook(count)
    return norm
''',
    "register_parametrization": '''
def register_parametrization(layer, name, module):
    """Compute a layer's parameter from another one by a module, anew in each call, as PyTorch's does."""
    if not hasattr(layer, "parametrizations"):
        layer.parametrizations = paddle.nn.LayerDict()
    if name in layer.parametrizations:
        layer.parametrizations[name].append(module)
    else:
        layer.parametrizations[name] = paddle.nn.LayerList([module])
        layer.parametrizations[name].original = layer._parameters.pop(name)
    turned = isinstance(layer, paddle.nn.Linear) and name == "weight"

    def compute(layer, inputs=None):
        held = layer.parametrizations[name]
        value = held.original.T if turned else held.original
        for one in held:
            value = one(value)
        object.__setattr__(layer, name, value.T if turned else value)

    compute(layer)
    if len(layer.parametrizations[name]) == 1:
        layer.register_forward_pre_hook(compute)
    return layer
''',
    "redraw_parameters": '''
def redraw_parameters(layer):
    """Draw a layer's parameters as PyTorch does when it makes one."""
    norms = paddle.nn.LayerNorm, paddle.nn.GroupNorm, paddle.nn.layer.norm._BatchNormBase
    weight = getattr(layer, "weight", None)
    if isinstance(layer, norms):
        draws = {"weight": paddle.nn.init.ones_, "bias": paddle.nn.init.zeros_}
    elif isinstance(layer, paddle.compat.nn.MultiheadAttention):
        draws = {"in_proj_bias": paddle.nn.init.zeros_, "out_proj.bias": paddle.nn.init.zeros_}
        for name, one in layer.named_parameters():
            if one.ndim == 2 and name != "out_proj.weight":
                draws[name] = paddle.nn.init.xavier_uniform_
    elif isinstance(layer, paddle.nn.Embedding):
        draws = {"weight": paddle.nn.init.normal_}
    else:
        if isinstance(layer, paddle.nn.Linear):
            width = weight.shape[0]
        elif isinstance(layer, paddle.nn.Bilinear):
            width = weight.shape[1]
        else:  # a recurrent layer has no weight of that name
            width = layer.hidden_size if weight is None else weight[0].size
        for one in layer.parameters():
            paddle.nn.init.uniform_(one, -(width**-0.5), width**-0.5)
        return
    for name, one in layer.named_parameters():
        if name in draws:
            draws[name](one)
''',
    "scale_rates": '''
def scale_rates(groups, lr):
    """Return the rate and the groups as Paddle takes them: each group's rate relative to the first's."""
    rate = float(groups[0].get("lr", lr))
    kept = [{name: value for name, value in one.items() if name != "lr"} for one in groups]
    scaled = [
        {**one, "learning_rate": group.get("lr", lr) / rate} for one, group in zip(kept, groups)
    ]
    return {"learning_rate": rate, "parameters": scaled}
''',
}
"""functions that rows are written with"""


PASSED_AROUND: Final = {
    "torch.autocast": '''
def {name}(device_type, dtype=None, enabled=True, cache_enabled=None):
    """Automatic mixed precision, with PyTorch's arguments."""
    return paddle.amp.auto_cast(enable=enabled, dtype=dtype or "float16")
''',
    "torch.cuda.amp.autocast": '''
def {name}(enabled=True, dtype=None, cache_enabled=True):
    """Automatic mixed precision, with PyTorch's arguments."""
    return paddle.amp.auto_cast(enable=enabled, dtype=dtype or "float16")
''',
}
"""what a row says where it is called, and cannot say where it is handed on"""
DRAWN: Final = "torch.nn.init."
_DRAWN: Final = '''
def {name}(tensor, *arguments, **named):
    """Draw a tensor's values in place, and return it."""
    {target}(tensor, *arguments, **named)
    return tensor
'''
"""an initialisation that is passed around: Paddle's returns nothing"""


def write_inplace(name: str, target: str) -> str:
    """Return the definition of a layer of Paddle's that changes its input in place."""
    return (
        f'class {name}({target}):\n    """Its input is changed too, and read afterwards."""\n\n'
        "    def forward(self, x):\n        return paddle.assign(super().forward(x.clone()), x)"
    )


def write_variant(public: str, needed: Mapping[str, str], name: str, base: str) -> str:
    """Return the definition of a layer with another forward pass; needed: as `write_adapter` takes it."""
    return _fill(VARIANTS[public], needed, name=name, base=base)


def _fill(text: str, needed: Mapping[str, str], **names: str) -> str:
    others = {one.rpartition(".")[2]: own for one, own in needed.items()}
    return text.format(**names, **others).strip()


def list_needed(text: str) -> list[str]:
    """Return the adapters that the text of another one is written with."""
    names = re.findall(r"(?<!\{)\{(\w+)\}", text)
    known = {one.rpartition(".")[2]: one for one in ADAPTERS}
    return [known[one] for one in dict.fromkeys(names) if one in known]


def write_adapter(public: str, name: str, rows: Sequence[ApiRow], needed: Mapping[str, str]) -> str:
    """Return the definition of a class or function with PyTorch's arguments, "" if none can be written.

    needed: the names of the adapters of `list_needed`.
    """
    if public in ADAPTERS:
        return _fill(ADAPTERS[public], needed, name=name)
    if public in PASSED_AROUND:
        return _fill(PASSED_AROUND[public], needed, name=name)
    held = find_object(public)
    if public.startswith(DRAWN):
        return _fill(_DRAWN, needed, name=name, target=f"paddle{public.removeprefix('torch')}")
    parameters = _list_parameters(held)
    if not rows or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return ""
    if not parameters and not isinstance(held, type):  # of a builtin nothing is known
        parameters = [inspect.Parameter(one, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                                        default=None if at else inspect.Parameter.empty)
                      for at, one in enumerate(rows[0].arguments)]  # fmt: skip
    known = {one.name for one in parameters}
    row = next((one for one in rows if set(one.arguments) <= known), None)
    if row is None:
        return ""
    defaults = _read_defaults(row)  # where PyTorch's None stands for a word, Paddle takes the word
    parameters = [
        one if one.default is not None else one.replace(default=defaults.get(one.name))
        for one in parameters
    ]
    arguments = ", ".join(
        one.name if one.default is one.empty else f"{one.name}={one.default!r}"
        for one in parameters
    )
    body = fill(row, {argument: argument for argument in row.arguments})
    if body is None:
        return ""
    target, _, inside = body.partition("(")
    if not isinstance(held, type):
        return f"def {name}({arguments}):\n    return {body}"
    return (
        f'class {name}({target}):\n    """Paddle\'s layer with PyTorch\'s arguments."""\n\n'
        f"    def __init__(self, {arguments}):\n        super().__init__({inside}"
    )


def _read_defaults(row: ApiRow) -> dict[str, Any]:
    """Return the words that Paddle's callee takes by itself for the arguments that a row hands on."""
    call = ast.parse(row.target, mode="eval").body
    if not isinstance(call, ast.Call):
        return {}
    try:
        parameters = inspect.signature(find_object(ast.unparse(call.func))).parameters
    except (TypeError, ValueError):
        return {}
    given = ((one.arg, one.value) for one in call.keywords if isinstance(one.value, ast.Name))
    found = {value.id: parameters[name].default for name, value in given if name in parameters}  # type: ignore[index]
    return {name: default for name, default in found.items() if isinstance(default, str)}


def _list_parameters(held: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function or class, of its first overload if it has any; none if unknown."""
    function = getattr(held, "__init__", held)
    has_module = hasattr(function, "__module__")  # object's own has none
    overloads = get_overloads(function) if has_module else []
    try:
        found = list(inspect.signature(overloads[0] if overloads else held).parameters.values())
    except (TypeError, ValueError):
        return list(_read_documented(held))
    return found[1:] if overloads and isinstance(held, type) else found


def _read_documented(held: Any) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a builtin, as the first line of its documentation gives them."""
    name, text = getattr(held, "__name__", ""), getattr(held, "__doc__", None) or ""
    found = re.match(rf"\s*{re.escape(name)}\(([^()]*(?:\([^()]*\)[^()]*)*)\) ->", text)
    try:
        given = ast.parse(f"def f({found[1]}): pass").body[0].args if found else None  # type: ignore[attr-defined]
    except SyntaxError:
        return
    if given is None or given.vararg or given.kwarg:
        return
    placed = len(given.args) - len(given.defaults)
    every = [*zip(given.args, [None] * placed + given.defaults, strict=True),
             *zip(given.kwonlyargs, given.kw_defaults, strict=True)]  # fmt: skip
    for one, default in every:
        value: Any = inspect.Parameter.empty
        if default is not None:
            text = ast.unparse(default)
            value = ast.literal_eval(text) if is_literal(text) else None
        yield inspect.Parameter(one.arg, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=value)
