"""Transformer encoders: PyTorch's own, Paddle's own and hand-written ones, under other names."""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from tests.pairs.case import Case, Inputs, Pair, case

import numpy as np
import paddle
import paddle.nn.functional as PF
import torch
import torch.nn.functional as TF

Rules = Sequence[tuple[str, tuple[str, ...]]]
Change = Callable[[Any], None]


@dataclass(frozen=True)
class Twins(Pair):
    """A pair that says, for its proof, which parameters are the same.

    A rule is (pattern, names): a parameter that matches is called by `names`, which take the
    pattern's groups; by several, if it holds several parts, one above the other in (out, in).
    """

    torch_rules: Rules = ()
    paddle_rules: Rules = ()


@dataclass(frozen=True)
class Part:
    """The `index`-th of `count` equal parts of a parameter, as rows of (out, in)."""

    tensor: Any
    index: int
    count: int
    transposed: bool

    def of(self, array: np.ndarray) -> np.ndarray:
        """Cut the part from the parameter's array (or its gradient's)."""
        return np.split(array.T if self.transposed else array, self.count)[self.index]

    @property
    def value(self) -> np.ndarray:
        return self.of(self.tensor.detach().numpy())


def torch_parts(model: torch.nn.Module, rules: Rules = ()) -> dict[str, Part]:
    """Return every name of every parameter (a tied one has several), under the names in common."""
    named = model.named_parameters(remove_duplicate=False)
    return dict(_parts(model, named, rules, lambda owner: type(owner).__name__ == "Conv1D"))


def paddle_parts(model: paddle.nn.Layer, rules: Rules = ()) -> dict[str, Part]:
    """Return every name of every parameter (a tied one has several), under the names in common."""
    named = [(name, it) for name, it in model.state_dict().items() if hasattr(it, "trainable")]
    return dict(_parts(model, named, rules, lambda owner: isinstance(owner, paddle.nn.Linear)))


def _parts(model: Any, named: Any, rules: Rules, turns: Any) -> Iterator[tuple[str, Part]]:
    for name, tensor in named:
        *path, leaf = name.split(".")
        transposed = leaf == "weight" and turns(reduce(getattr, path, model))
        names = _common_names(name, rules)
        for index, common in enumerate(names):
            yield common, Part(tensor, index, len(names), transposed)


def _common_names(name: str, rules: Rules) -> tuple[str, ...]:
    for pattern, names in rules:
        if match := re.fullmatch(pattern, name):
            return tuple(match.expand(common) for common in names)
    return (name,)


def carry(pair: Twins) -> None:
    """Give the Paddle model the torch model's parameters, by the pair's own rules."""
    source = torch_parts(pair.torch_model, pair.torch_rules)
    whole: dict[int, list[tuple[Part, np.ndarray]]] = {}
    for name, part in paddle_parts(pair.paddle_model, pair.paddle_rules).items():
        if name in source:
            whole.setdefault(id(part.tensor), []).append((part, source[name].value))
    for parts in whole.values():
        first = parts[0][0]
        array = np.concatenate([value for _, value in parts[: first.count]])
        array = np.ascontiguousarray(array.T if first.transposed else array)
        if list(array.shape) == first.tensor.shape:
            first.tensor.set_value(array)


def randomise(model: torch.nn.Module, scale: float) -> None:
    """Move every parameter from its first value: a bias of 0 or a gain of 1 shows no fault."""
    random = np.random.default_rng(5)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = scale * random.standard_normal(tuple(parameter.shape))
            parameter += torch.from_numpy(noise).to(parameter.dtype)


def twins(
    torch_model: torch.nn.Module,
    paddle_model: paddle.nn.Layer,
    inputs: Inputs,
    change: Change | None = None,
    change_weights: Change | None = None,
    torch_rules: Rules = (),
    paddle_rules: Rules = (),
    noise: float = 0.2,
    **options: Any,
) -> Twins:
    """Return the pair; `change` acts on the port, `change_weights` on the port's converted weights."""
    randomise(torch_model, noise)
    if change:
        change(paddle_model)
    if change_weights:
        options["copy_weights"] = False
    pair = Twins(torch_model, paddle_model, inputs, options, torch_rules, paddle_rules)
    if change_weights:
        carry(pair)
        change_weights(paddle_model)
    return pair


def seed() -> None:
    """Let both frameworks draw the same first weights every time."""
    torch.manual_seed(3)
    paddle.seed(4)


def at(model: Any, path: str) -> Any:
    """Return the layer or parameter of that dotted name; the model for ""."""
    return reduce(getattr, path.split("."), model) if path else model


def override(*paths: str, **members: Any) -> Change:
    """Return a change that replaces methods of the layers at `paths`."""

    def change(model: Any) -> None:
        for path in paths:
            layer = at(model, path)
            layer.__class__ = type(type(layer).__name__, (type(layer),), members)

    return change


def setting(*paths: str, **values: Any) -> Change:
    """Return a change that sets attributes of the layers at `paths`."""

    def change(model: Any) -> None:
        for path in paths:
            for name, value in values.items():
                setattr(at(model, path), name, value)

    return change


def weight(function: Callable[..., np.ndarray], *paths: str) -> Change:
    """Return a change of the parameters at `paths`: each from its own value."""

    def change(model: Any) -> None:
        for path in paths:
            parameter = at(model, path)
            parameter.set_value(np.ascontiguousarray(function(parameter.numpy())))

    return change


def swap(one: str, other: str) -> Change:
    """Return a change that lets the parameters of two layers (or two parameters) trade places."""

    def change(model: Any) -> None:
        left, right = (_parameters(at(model, path)) for path in (one, other))
        values = [parameter.numpy().copy() for parameter in left]
        for parameter, twin, value in zip(left, right, values, strict=True):
            parameter.set_value(twin.numpy())
            twin.set_value(value)

    return change


def repeat(source: str, target: str) -> Change:
    """Return a change that gives `target` the parameters of `source`."""

    def change(model: Any) -> None:
        for parameter, twin in zip(
            _parameters(at(model, target)), _parameters(at(model, source)), strict=True
        ):
            parameter.set_value(twin.numpy())

    return change


def frozen(*paths: str) -> Change:
    """Return a change that stops the gradient of every parameter at `paths`."""

    def change(model: Any) -> None:
        for path in paths:
            for parameter in _parameters(at(model, path)):
                parameter.stop_gradient = True

    return change


def _parameters(holder: Any) -> list[Any]:
    return list(holder.parameters()) if hasattr(holder, "parameters") else [holder]


def below(model: str, *leaves: str) -> tuple[str, ...]:
    """Return the dotted names of a module and of its `leaves`."""
    return model, *(f"{model}.{leaf}" for leaf in leaves)


def squares(output: Any) -> Any:
    """Return the mean square of the first tensor of an output."""
    return (_first(output) ** 2).mean()


LOSSES = {"torch_loss": squares, "paddle_loss": squares}


def _first(output: Any) -> Any:
    while isinstance(output, tuple | list | Mapping):
        output = next(iter(output.values() if isinstance(output, Mapping) else output))
    return output


D, HEADS, WIDE, CLASSES = 12, 3, 20, 4


class TorchAttention(torch.nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.heads = HEADS
        self.query = torch.nn.Linear(D, D)
        self.key = torch.nn.Linear(D, D)
        self.value = torch.nn.Linear(D, D)
        self.dropout = torch.nn.Dropout(dropout)
        self.output = torch.nn.Linear(D, D)

    def split(self, x):
        B, L, _ = x.shape
        return x.reshape([B, L, self.heads, -1]).permute([0, 2, 1, 3])

    def merge(self, x):
        B, _, L, _ = x.shape
        return x.permute([0, 2, 1, 3]).reshape([B, L, D])

    def scores(self, query, key, keep):
        scores = torch.matmul(query, key.transpose(-1, -2)) / query.shape[-1] ** 0.5
        return scores + (1 - keep)[:, None, None] * -1e9

    def forward(self, x, keep):
        query, key = self.split(self.query(x)), self.split(self.key(x))
        value = self.split(self.value(x))
        probs = self.dropout(TF.softmax(self.scores(query, key, keep), dim=-1))
        return self.output(self.merge(torch.matmul(probs, value)))


class TorchFeedForward(torch.nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.wide = torch.nn.Linear(D, WIDE)
        self.dropout = torch.nn.Dropout(dropout)
        self.narrow = torch.nn.Linear(WIDE, D)

    def forward(self, x):
        return self.narrow(self.dropout(TF.gelu(self.wide(x))))


class TorchBlock(torch.nn.Module):
    def __init__(self, dropout: float, pre_norm: bool):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = TorchAttention(dropout)
        self.attention_dropout = torch.nn.Dropout(dropout)
        self.attention_norm = torch.nn.LayerNorm(D)
        self.ffn = TorchFeedForward(dropout)
        self.ffn_dropout = torch.nn.Dropout(dropout)
        self.ffn_norm = torch.nn.LayerNorm(D)

    def forward(self, x, keep):
        if self.pre_norm:
            x = x + self.attention_dropout(self.attention(self.attention_norm(x), keep))
            return x + self.ffn_dropout(self.ffn(self.ffn_norm(x)))
        x = self.attention_norm(x + self.attention_dropout(self.attention(x, keep)))
        return self.ffn_norm(x + self.ffn_dropout(self.ffn(x)))


class TorchEncoder(torch.nn.Module):
    """Classifies sequences of vectors (B, L, 7), whose `keep` (B, L) is 1 and for padding 0."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False, depth: int = 2):
        super().__init__()
        self.project = torch.nn.Linear(7, D)
        blocks = [TorchBlock(dropout, pre_norm) for _ in range(depth)]
        self.blocks = torch.nn.ModuleList(blocks)
        self.norm = torch.nn.LayerNorm(D)
        self.head = torch.nn.Linear(D, CLASSES)

    def pool(self, x, keep):
        return (x * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)

    def forward(self, x, keep):
        x = self.project(x)
        for block in self.blocks:
            x = block(x, keep)
        return self.head(self.pool(self.norm(x), keep))


class PaddleAttention(paddle.nn.Layer):
    def __init__(self, dropout: float):
        super().__init__()
        self.heads = HEADS
        self.query = paddle.nn.Linear(D, D)
        self.key = paddle.nn.Linear(D, D)
        self.value = paddle.nn.Linear(D, D)
        self.dropout = paddle.nn.Dropout(dropout)
        self.output = paddle.nn.Linear(D, D)

    def split(self, x):
        B, L, _ = x.shape
        return x.reshape([B, L, self.heads, -1]).transpose([0, 2, 1, 3])

    def merge(self, x):
        B, _, L, _ = x.shape
        return x.transpose([0, 2, 1, 3]).reshape([B, L, D])

    def scores(self, query, key, keep):
        scores = paddle.matmul(query, key, transpose_y=True) / query.shape[-1] ** 0.5
        return scores + (1 - keep)[:, None, None] * -1e9

    def forward(self, x, keep):
        query, key = self.split(self.query(x)), self.split(self.key(x))
        value = self.split(self.value(x))
        probs = self.dropout(PF.softmax(self.scores(query, key, keep), axis=-1))
        return self.output(self.merge(paddle.matmul(probs, value)))


class PaddleFeedForward(paddle.nn.Layer):
    def __init__(self, dropout: float):
        super().__init__()
        self.wide = paddle.nn.Linear(D, WIDE)
        self.dropout = paddle.nn.Dropout(dropout)
        self.narrow = paddle.nn.Linear(WIDE, D)

    def forward(self, x):
        return self.narrow(self.dropout(PF.gelu(self.wide(x))))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, dropout: float, pre_norm: bool):
        super().__init__()
        self.pre_norm = pre_norm
        self.attention = PaddleAttention(dropout)
        self.attention_dropout = paddle.nn.Dropout(dropout)
        self.attention_norm = paddle.nn.LayerNorm(D)
        self.ffn = PaddleFeedForward(dropout)
        self.ffn_dropout = paddle.nn.Dropout(dropout)
        self.ffn_norm = paddle.nn.LayerNorm(D)

    def forward(self, x, keep):
        if self.pre_norm:
            x = x + self.attention_dropout(self.attention(self.attention_norm(x), keep))
            return x + self.ffn_dropout(self.ffn(self.ffn_norm(x)))
        x = self.attention_norm(x + self.attention_dropout(self.attention(x, keep)))
        return self.ffn_norm(x + self.ffn_dropout(self.ffn(x)))


class PaddleEncoder(paddle.nn.Layer):
    """The port of TorchEncoder."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False, depth: int = 2):
        super().__init__()
        self.project = paddle.nn.Linear(7, D)
        blocks = [PaddleBlock(dropout, pre_norm) for _ in range(depth)]
        self.blocks = paddle.nn.LayerList(blocks)
        self.norm = paddle.nn.LayerNorm(D)
        self.head = paddle.nn.Linear(D, CLASSES)

    def pool(self, x, keep):
        return (x * keep.unsqueeze(-1)).sum(1) / keep.sum(1, keepdim=True)

    def forward(self, x, keep):
        x = self.project(x)
        for block in self.blocks:
            x = block(x, keep)
        return self.head(self.pool(self.norm(x), keep))


class TorchStock(TorchEncoder):
    """The same, of PyTorch's own layers: query, key and value in one parameter."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False, depth: int = 2):
        super().__init__(dropout, pre_norm, depth=0)
        del self.blocks
        layer = torch.nn.TransformerEncoderLayer(
            D, HEADS, WIDE, dropout, "gelu", batch_first=True, norm_first=pre_norm
        )
        self.encoder = torch.nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, x, keep):
        x = self.encoder(self.project(x), src_key_padding_mask=keep == 0)
        return self.head(self.pool(self.norm(x), keep))


class PaddleStock(PaddleEncoder):
    """The same, of Paddle's own layers."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False, depth: int = 2, **options):
        super().__init__(dropout, pre_norm, depth=0)
        del self.blocks
        given = {"activation": "gelu", "normalize_before": pre_norm, "nhead": HEADS} | options
        layer = paddle.nn.TransformerEncoderLayer(D, dim_feedforward=WIDE, dropout=dropout, **given)
        self.encoder = paddle.nn.TransformerEncoder(layer, depth)

    def additive(self, keep):
        return (1 - keep)[:, None, None] * -1e9

    def forward(self, x, keep):
        x = self.encoder(self.project(x), self.additive(keep))
        return self.head(self.pool(self.norm(x), keep))


OUTER = (
    (r"encoder\.layers\.(\d+)\.norm1\.(\w+)", (r"blocks.\1.attention_norm.\2",)),
    (r"encoder\.layers\.(\d+)\.norm2\.(\w+)", (r"blocks.\1.ffn_norm.\2",)),
    (r"encoder\.layers\.(\d+)\.linear1\.(\w+)", (r"blocks.\1.ffn.wide.\2",)),
    (r"encoder\.layers\.(\d+)\.linear2\.(\w+)", (r"blocks.\1.ffn.narrow.\2",)),
    (r"encoder\.layers\.(\d+)\.self_attn\.out_proj\.(\w+)", (r"blocks.\1.attention.output.\2",)),
)
QKV = ("query", "key", "value")
TORCH_STOCK = (
    *OUTER,
    (
        r"encoder\.layers\.(\d+)\.self_attn\.in_proj_(\w+)",
        tuple(rf"blocks.\1.attention.{name}.\2" for name in QKV),
    ),
)
PADDLE_STOCK = (
    *OUTER,
    *(
        (
            rf"encoder\.layers\.(\d+)\.self_attn\.{name[0]}_proj\.(\w+)",
            (rf"blocks.\1.attention.{name}.\2",),
        )
        for name in QKV
    ),
)
RULES = {TorchStock: TORCH_STOCK, PaddleStock: PADDLE_STOCK}


def batch() -> tuple[np.ndarray, np.ndarray]:
    """Return three sequences of six vectors, the second and third padded."""
    x = np.random.default_rng(0).standard_normal((3, 6, 7)).astype("float32")
    keep = np.ones((3, 6), "float32")
    keep[1, 4:] = keep[2, 3:] = 0
    return x, keep


def encoder(
    torch_class=TorchEncoder, paddle_class=PaddleEncoder, port=None, losses=LOSSES, **given
) -> Twins:
    """Build an encoder pair; `port` holds what the port's constructor is given besides or instead."""
    seed()
    arguments = {key: given.pop(key) for key in ("dropout", "pre_norm", "depth") if key in given}
    return twins(
        torch_class(**arguments),
        paddle_class(**arguments | (port or {})),
        batch(),
        **{
            "torch_rules": RULES.get(torch_class, ()),
            "paddle_rules": RULES.get(paddle_class, ()),
        }
        | losses
        | given,
    )


STOCK_NAMES = {
    "attention": "self_attn",
    "attention_norm": "norm1",
    "attention_dropout": "dropout1",
    "ffn": "",
    "ffn.dropout": "dropout",
    "ffn.wide": "linear1",
    "ffn.narrow": "linear2",
    "ffn_norm": "norm2",
    "ffn_dropout": "dropout2",
}


def block(number: int, part: str, *leaves: str) -> tuple[str, ...]:
    """Return how either side calls a part of a block, and the part's `leaves`."""
    hand, stock = f"blocks.{number}", f"encoder.layers.{number}"
    ours = below(f"{hand}.{part}".rstrip("."), *leaves)
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
    owner, _, leaf = part.rpartition(".")
    theirs = f"{owner}.{names[leaf]}" if leaf in names else part
    head, _, rest = theirs.partition(".")
    if head == "attention" or theirs not in STOCK_NAMES:
        stem = f"{stock}.{'.'.join(filter(None, (STOCK_NAMES.get(head, head), rest)))}"
    else:
        stem = f"{stock}.{STOCK_NAMES[theirs]}"
    return *ours, *below(stem.rstrip("."), *leaves)


def both_blocks(part: str, *leaves: str) -> tuple[str, ...]:
    """Return the names of a part whose code, or setting, is wrong in every block."""
    return block(0, part, *leaves) + block(1, part, *leaves)


WB = ("weight", "bias")
IN_PROJ = tuple(f"encoder.layers.{n}.self_attn.in_proj_{leaf}" for n in (0, 1) for leaf in WB)
ATTENTIONS = ("blocks.0.attention", "blocks.1.attention")
BLOCKS = ("blocks.0", "blocks.1")


def _plain_scores(self, query, key, keep, scale=1.0, mask=lambda keep: (1 - keep) * -1e9):
    scores = paddle.matmul(query, key, transpose_y=True) * scale
    return scores + mask(keep)[:, None, None]


def _attend(self, x, keep, axis=-1, names=QKV, detached=()):
    parts = []
    for role, name in zip(QKV, names, strict=True):
        part = self.split(getattr(self, name)(x))
        parts.append(part.detach() if role in detached else part)
    query, key, value = parts
    probs = self.dropout(PF.softmax(self.scores(query, key, keep), axis=axis))
    return self.output(self.merge(paddle.matmul(probs, value)))


def _scores(**given):
    return override(*ATTENTIONS, scores=lambda *a: _plain_scores(*a, **given))


def _attention(*paths, **given):
    return override(*paths or ATTENTIONS, forward=lambda *a: _attend(*a, **given))


def _keeping_padded_scores(self, query, key, keep):
    scores = paddle.matmul(query, key, transpose_y=True) / query.shape[-1] ** 0.5
    return scores * keep[:, None, None]


def _masking_queries(self, query, key, keep):
    scores = paddle.matmul(query, key, transpose_y=True) / query.shape[-1] ** 0.5
    return scores + (1 - keep)[:, None, :, None] * -1e9


def _split_otherwise(self, x):
    B, L, _ = x.shape
    return x.reshape([B, L, -1, self.heads]).transpose([0, 3, 1, 2])


def _merge_as_it_lies(self, x):
    B, _, L, _ = x.shape
    return x.reshape([B, L, D])


def _norm_after_residual_of_normed(self, x, keep):
    normed = self.attention_norm(x)
    x = normed + self.attention_dropout(self.attention(normed, keep))
    return x + self.ffn_dropout(self.ffn(self.ffn_norm(x)))


def _second_residual_from_first(self, x, keep):
    attended = self.attention_norm(x + self.attention_dropout(self.attention(x, keep)))
    return self.ffn_norm(x + self.ffn_dropout(self.ffn(attended)))


def _no_second_residual(self, x, keep):
    x = self.attention_norm(x + self.attention_dropout(self.attention(x, keep)))
    return self.ffn_norm(self.ffn_dropout(self.ffn(x)))


def _drop_after_sum(self, x, keep):
    x = self.attention_norm(self.attention_dropout(x + self.attention(x, keep)))
    return self.ffn_norm(x + self.ffn_dropout(self.ffn(x)))


def _no_inner_dropout(self, x):
    return self.narrow(PF.gelu(self.wide(x)))


def _drop_before_gelu(self, x):
    return self.narrow(PF.gelu(self.dropout(self.wide(x))))


def _tanh_gelu(self, x):
    return self.narrow(self.dropout(PF.gelu(self.wide(x), approximate=True)))


def _relu(self, x):
    return self.narrow(self.dropout(PF.relu(self.wide(x))))


def _drop_scores(self, x, keep):
    query, key = self.split(self.query(x)), self.split(self.key(x))
    value = self.split(self.value(x))
    probs = PF.softmax(self.dropout(self.scores(query, key, keep)), axis=-1)
    return self.output(self.merge(paddle.matmul(probs, value)))


def _pool_padding(self, x, keep):
    return x.mean(1)


def _pool_whole_length(self, x, keep):
    return (x * keep.unsqueeze(-1)).mean(1)


def _without_last_norm(self, x, keep):
    x = self.project(x)
    for block in self.blocks:
        x = block(x, keep)
    return self.head(self.pool(x, keep))


def _backwards(self, x, keep):
    x = self.project(x)
    for number in (1, 0):
        x = self.blocks[number](x, keep)
    return self.head(self.pool(self.norm(x), keep))


def _first_twice(self, x, keep):
    x = self.project(x)
    for number in (0, 0):
        x = self.blocks[number](x, keep)
    return self.head(self.pool(self.norm(x), keep))


def _mask_first_only(self, x, keep):
    x = self.project(x)
    for number in (0, 1):
        x = self.blocks[number](x, keep if number == 0 else paddle.ones_like(keep))
    return self.head(self.pool(self.norm(x), keep))


def _detached_input(self, x, keep):
    return PaddleBlock.forward(self, x.detach(), keep)


def _stays_in_eval(self):
    paddle.nn.Layer.train(self)
    self.blocks[0].eval()


def _without_bias(model: Any) -> None:
    model.blocks[1].ffn.wide = paddle.nn.Linear(D, WIDE, bias_attr=False)


def _untransposed(*paths: str) -> Change:
    return weight(np.transpose, *paths)


def _interleaved(path: str) -> Change:
    """Return a change that reads (heads, head size) as (head size, heads)."""

    def columns(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:-1], HEADS, -1).swapaxes(-1, -2).reshape(array.shape)

    return weight(columns, f"{path}.weight", f"{path}.bias")


def _rotated_qkv(model: Any) -> None:
    """Take the fused rows as value, query, key."""
    attention = model.blocks[0].attention
    swap("query", "key")(attention)
    swap("query", "value")(attention)


Planted = tuple[str, dict[str, Any], tuple[str, ...], tuple[str, ...]]

WEIGHTS, FORWARD, BACKWARD = ("weights",), ("audit", "forward"), ("backward",)


def _bug(name, culprits, stages=(), weights=None, **given) -> Planted:
    if weights:
        given["change_weights"] = weights
    return name, given, tuple(culprits), stages


def _of(projection: str, number: int = 0) -> tuple[str, ...]:
    return (*block(number, f"attention.{projection}", *WB), *IN_PROJ[2 * number : 2 * number + 2])


QK = (*_of("query"), *_of("key"))
CORES = both_blocks("attention")
PLANTED = [
    _bug("square query untransposed", _of("query"), WEIGHTS,
         _untransposed("blocks.0.attention.query.weight")),
    _bug("square output untransposed", block(1, "attention.output", *WB), WEIGHTS,
         _untransposed("blocks.1.attention.output.weight")),
    _bug("query and key swapped", QK, WEIGHTS,
         swap("blocks.0.attention.query", "blocks.0.attention.key")),
    _bug("key and value swapped", (*_of("key", 1), *_of("value", 1)), WEIGHTS,
         swap("blocks.1.attention.key", "blocks.1.attention.value")),
    _bug("q k v rotated", (*QK, *_of("value")), WEIGHTS, _rotated_qkv),
    _bug("heads of the value interleaved", _of("value"), WEIGHTS,
         _interleaved("blocks.0.attention.value")),
    _bug("first block's weights twice", tuple(
        name for part in ("query", "key", "value", "output")
        for name in (*block(1, f"attention.{part}", *WB), *_of(part, 1))
    ) + tuple(name for part in ("attention_norm", "ffn.wide", "ffn.narrow", "ffn_norm")
              for name in block(1, part, *WB)), WEIGHTS, repeat("blocks.0", "blocks.1")),
    _bug("norms swapped", (*block(0, "attention_norm", *WB), *block(0, "ffn_norm", *WB)), WEIGHTS,
         swap("blocks.0.attention_norm", "blocks.0.ffn_norm")),
    _bug("gamma and beta swapped", block(1, "ffn_norm", *WB), WEIGHTS,
         swap("blocks.1.ffn_norm.weight", "blocks.1.ffn_norm.bias")),
    _bug("key bias left out", _of("key"), WEIGHTS, weight(np.zeros_like, "blocks.0.attention.key.bias")),
    _bug("wide without a bias", block(1, "ffn.wide", *WB), change=_without_bias),
    _bug("eps 1e-12", block(0, "attention_norm"), FORWARD,
         change=setting("blocks.0.attention_norm", _epsilon=1e-12)),
    _bug("eps 1e-6 in the last norm", ("norm",), FORWARD, change=setting("norm", _epsilon=1e-6)),
    _bug("two heads", CORES, FORWARD, change=setting(*ATTENTIONS, heads=2)),
    _bug("pre-norm", BLOCKS + both_blocks(""), FORWARD, change=setting(*BLOCKS, pre_norm=True)),
    _bug("no scale", CORES, FORWARD, change=_scores()),
    _bug("scale 1/d", CORES, FORWARD, change=_scores(scale=HEADS / D)),
    _bug("scale of the whole width", CORES, FORWARD, change=_scores(scale=D**-0.5)),
    _bug("mask turned round", CORES, FORWARD,
         change=_scores(scale=0.5, mask=lambda keep: keep * -1e9)),
    _bug("mask not used", CORES, FORWARD,
         change=_scores(scale=0.5, mask=lambda keep: keep * 0)),
    _bug("mask of -1 for -inf", CORES, FORWARD,
         change=_scores(scale=0.5, mask=lambda keep: keep - 1)),
    _bug("mask multiplied", CORES, FORWARD,
         change=override(*ATTENTIONS, scores=_keeping_padded_scores)),
    _bug("mask on the queries", CORES, FORWARD,
         change=override(*ATTENTIONS, scores=_masking_queries)),
    _bug("softmax over queries", CORES, FORWARD, change=_attention(axis=-2)),
    _bug("softmax over heads", block(1, "attention"), FORWARD,
         change=_attention("blocks.1.attention", axis=1)),
    _bug("query as key", CORES, FORWARD, change=_attention(names=("query", "query", "value"))),
    _bug("key as value", block(1, "attention"), FORWARD,
         change=_attention("blocks.1.attention", names=("query", "key", "key"))),
    _bug("heads split otherwise", CORES, FORWARD,
         change=override(*ATTENTIONS, split=_split_otherwise)),
    _bug("heads merged untransposed", CORES, FORWARD,
         change=override(*ATTENTIONS, merge=_merge_as_it_lies)),
    _bug("residual from the normed input", BLOCKS + both_blocks(""), FORWARD, pre_norm=True,
         change=override(*BLOCKS, forward=_norm_after_residual_of_normed)),
    _bug("second residual from the block's input", block(1, ""), FORWARD,
         change=override("blocks.1", forward=_second_residual_from_first)),
    _bug("second residual missing", block(0, ""), FORWARD,
         change=override("blocks.0", forward=_no_second_residual)),
    _bug("gelu by tanh", both_blocks("ffn"), FORWARD,
         change=override("blocks.0.ffn", "blocks.1.ffn", forward=_tanh_gelu)),
    _bug("relu", block(1, "ffn"), FORWARD, change=override("blocks.1.ffn", forward=_relu)),
    _bug("pooling counts padding", ("",), FORWARD, change=override("", pool=_pool_padding)),
    _bug("pooling over the whole length", ("",), FORWARD,
         change=override("", pool=_pool_whole_length)),
    _bug("last norm left out", ("", "norm"), FORWARD, change=override("", forward=_without_last_norm)),
    _bug("blocks backwards", ("", "encoder"), FORWARD, change=override("", forward=_backwards)),
    _bug("first block twice", ("", "encoder"), FORWARD, change=override("", forward=_first_twice)),
    _bug("mask in the first block only", ("", "encoder"), FORWARD,
         change=override("", forward=_mask_first_only)),
    _bug("attention dropout 0.5", block(0, "attention.dropout") + block(0, "attention"), FORWARD,
         change=setting("blocks.0.attention.dropout", p=0.5)),
    _bug("attention dropout forgotten", CORES + both_blocks("attention.dropout"), FORWARD,
         change=setting(*(f"{path}.dropout" for path in ATTENTIONS), p=0.0)),
    _bug("dropout of the scores", CORES, FORWARD,
         change=override(*ATTENTIONS, forward=_drop_scores)),
    _bug("dropout p 0.2", block(1, "ffn_dropout"), FORWARD,
         change=setting("blocks.1.ffn_dropout", p=0.2)),
    _bug("dropout after the sum", both_blocks("") + both_blocks("attention_dropout"), FORWARD,
         change=override(*BLOCKS, forward=_drop_after_sum)),
    _bug("inner dropout left out", both_blocks("ffn") + both_blocks("ffn.dropout"), FORWARD,
         change=override("blocks.0.ffn", "blocks.1.ffn", forward=_no_inner_dropout)),
    _bug("inner dropout before gelu", both_blocks("ffn") + both_blocks("ffn.dropout"), FORWARD,
         change=override("blocks.0.ffn", "blocks.1.ffn", forward=_drop_before_gelu)),
    _bug("dropout scaled in eval", block(1, "ffn_dropout"), FORWARD,
         change=setting("blocks.1.ffn_dropout", mode="downscale_in_infer")),
    _bug("first block stays in eval", (
        *block(0, ""), *block(0, "attention"), *block(0, "attention.dropout"),
        *block(0, "attention_dropout"), *block(0, "ffn.dropout"), *block(0, "ffn_dropout"),
        *block(0, "ffn")), FORWARD, change=override("", train=_stays_in_eval)),
    _bug("key detached", (*CORES, *(n for i in (0, 1) for n in _of("key", i))), BACKWARD,
         change=_attention(detached=("key",))),
    _bug("block's input detached", block(1, ""), BACKWARD,
         change=override("blocks.1", forward=_detached_input)),
    _bug("value frozen", _of("value"), (), change=frozen("blocks.0.attention.value")),
    _bug("norm frozen", block(1, "ffn_norm", *WB), (), change=frozen("blocks.1.ffn_norm")),
]  # fmt: skip


def _planted_cases() -> Iterator[Case]:
    for name, given, culprits, stages in PLANTED:
        for side in (TorchEncoder, TorchStock):
            build = partial(encoder, side, **given)
            yield case(f"{side.__name__}: {name}", build, *culprits, stages=stages)


class TorchNested(TorchStock):
    """With nested tensors allowed, as PyTorch has it by default."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.encoder.enable_nested_tensor = self.encoder.use_nested_tensor = True


class TorchTimeFirst(TorchStock):
    """Runs its layers on (L, B, D)."""

    def __init__(self, dropout: float = 0.0, pre_norm: bool = False, depth: int = 2):
        super().__init__(dropout, pre_norm, depth)
        layer = torch.nn.TransformerEncoderLayer(D, HEADS, WIDE, dropout, "gelu")
        self.encoder = torch.nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)

    def forward(self, x, keep):
        x = self.encoder(self.project(x).transpose(0, 1), src_key_padding_mask=keep == 0)
        return self.head(self.pool(self.norm(x.transpose(0, 1)), keep))


class TorchFused(TorchAttention):
    """Query, key and value from one Linear, and the framework's own attention."""

    def __init__(self, dropout: float):
        torch.nn.Module.__init__(self)
        self.heads, self.p = HEADS, dropout
        self.c_attn = torch.nn.Linear(D, 3 * D)
        self.c_proj = torch.nn.Linear(D, D)

    def forward(self, x, keep):
        parts = (self.split(part) for part in self.c_attn(x).chunk(3, dim=-1))
        p = self.p if self.training else 0.0
        mask = keep[:, None, None] > 0
        x = TF.scaled_dot_product_attention(*parts, attn_mask=mask, dropout_p=p)
        return self.c_proj(self.merge(x))


class PaddleFused(PaddleAttention):
    """Query, key and value from one Linear."""

    def __init__(self, dropout: float):
        paddle.nn.Layer.__init__(self)
        self.heads, self.p = HEADS, dropout
        self.c_attn = paddle.nn.Linear(D, 3 * D)
        self.c_proj = paddle.nn.Linear(D, D)

    def forward(self, x, keep):
        query, key, value = (self.split(it) for it in self.c_attn(x).chunk(3, axis=-1))
        probs = PF.softmax(self.scores(query, key, keep), axis=-1)
        probs = PF.dropout(probs, self.p, training=self.training)
        return self.c_proj(self.merge(paddle.matmul(probs, value)))


class PaddleNumbered(PaddleAttention):
    """Its layers are called by numbers, made and used in another order than the torch model's."""

    def __init__(self, dropout: float):
        paddle.nn.Layer.__init__(self)
        self.heads, self.dropout = HEADS, paddle.nn.Dropout(dropout)
        self.fc0 = paddle.nn.Linear(D, D)
        self.fc1 = paddle.nn.Linear(D, D)
        self.fc2 = paddle.nn.Linear(D, D)
        self.fc3 = paddle.nn.Linear(D, D)

    def forward(self, x, keep):
        value, query, key = (self.split(fc(x)) for fc in (self.fc2, self.fc3, self.fc1))
        probs = self.dropout(PF.softmax(self.scores(query, key, keep), axis=-1))
        return self.fc0(self.merge(paddle.matmul(probs, value)))


class PaddleOwnAttention(PaddleAttention):
    """The framework's own attention, which takes (B, L, H, K)."""

    def forward(self, x, keep):
        B, L, _ = x.shape
        query, key, value = (
            it(x).reshape([B, L, self.heads, -1]) for it in (self.query, self.key, self.value)
        )
        mask = ((1 - keep) * -1e9)[:, None, None].expand([B, self.heads, L, L])
        x = PF.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.output(x.reshape([B, L, D]))


def _attentions(attention: type, *arguments: Any) -> Change:
    def change(model: Any) -> None:
        for it in model.blocks:
            it.attention = attention(*arguments)

    return change


class TorchWithFused(TorchEncoder):
    def __init__(self, dropout: float = 0.1, **options):
        super().__init__(dropout, **options)
        _attentions(TorchFused, dropout)(self)


def _halves(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(rf"blocks.\1.attention.{part}.\2" for part in parts)


FUSED = (
    (r"blocks\.(\d+)\.attention\.c_attn\.(\w+)", _halves(QKV)),
    (r"blocks\.(\d+)\.attention\.c_proj\.(\w+)", _halves(["output"])),
)
NUMBERED = tuple(
    (rf"blocks\.(\d+)\.attention\.fc{number}\.(\w+)", _halves([name]))
    for number, name in enumerate(("output", "key", "value", "query"))
)
RULES[TorchNested] = RULES[TorchTimeFirst] = TORCH_STOCK
RULES[TorchWithFused] = FUSED


def _where_scores(self, query, key, keep):
    scores = paddle.matmul(query, key, transpose_y=True) * query.shape[-1] ** -0.5
    lowest = paddle.full_like(scores, -math.inf)
    return paddle.where(keep[:, None, None].astype("bool"), scores, lowest)


def _filled_scores(self, query, key, keep):
    padding = keep[:, None, None] == 0
    scores = paddle.matmul(query / query.shape[-1] ** 0.5, key.transpose([0, 1, 3, 2]))
    return paddle.masked_fill(scores, padding, -1e4)


def _functional_dropout(self, x, keep):
    x = x + PF.dropout(self.attention(x, keep), 0.1, training=self.training)
    x = self.attention_norm(x)
    return self.ffn_norm(x + PF.dropout(self.ffn(x), 0.1, training=self.training))


def _without_dropout_layers(model: Any) -> None:
    for it in model.blocks:
        del it.attention_dropout, it.ffn_dropout
    override(*BLOCKS, forward=_functional_dropout)(model)


def _called_otherwise(self, x, keep):
    value, key = self.split(self.value(x)), self.split(self.key(x))
    scores = self.scores(self.split(self.query(x)), key, keep)
    return self.output(self.merge(paddle.matmul(self.dropout(PF.softmax(scores, -1)), value)))


def _unused_pooler(model: Any) -> None:
    model.pooler = paddle.nn.Linear(D, D)


class TorchShared(TorchEncoder):
    """One block, used three times (as in ALBERT)."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False):
        super().__init__(dropout, pre_norm, depth=1)

    def forward(self, x, keep):
        x = self.project(x)
        for _ in range(3):
            x = self.blocks[0](x, keep)
        return self.head(self.pool(self.norm(x), keep))


class PaddleShared(PaddleEncoder):
    """One block, used as often as `times` says."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False, times: int = 3):
        super().__init__(dropout, pre_norm, depth=1)
        self.times = times

    def forward(self, x, keep):
        x = self.project(x)
        for _ in range(self.times):
            x = self.blocks[0](x, keep)
        return self.head(self.pool(self.norm(x), keep))


class PaddleListed(PaddleEncoder):
    """One block under three names."""

    def __init__(self, dropout: float = 0.1, pre_norm: bool = False):
        super().__init__(dropout, pre_norm, depth=1)
        self.blocks.extend([self.blocks[0], self.blocks[0]])


class TorchStates(TorchEncoder):
    """Returns every state of the sequence, the last one's summary, and nothing for attentions."""

    def forward(self, x, keep):
        states = [self.project(x)]
        for block in self.blocks:
            states.append(block(states[-1], keep))
        pooled = self.head(self.pool(self.norm(states[-1]), keep))
        return {"logits": pooled, "states": tuple(states), "attentions": None}


class PaddleStates(PaddleEncoder):
    """The same; `order` says which states are returned, and `as_tuple` that nothing is named."""

    def __init__(self, *args, as_tuple: bool = False, order: Sequence[int] = (0, 1, 2), **options):
        super().__init__(*args, **options)
        self.as_tuple, self.order = as_tuple, order

    def forward(self, x, keep):
        states = [self.project(x)]
        for block in self.blocks:
            states.append(block(states[-1], keep))
        pooled = self.head(self.pool(self.norm(states[-1]), keep))
        states = [states[number] for number in self.order]
        if self.as_tuple:
            return pooled, tuple(states), None
        return {"logits": pooled, "states": states, "attentions": None}


def named(torch_class=TorchEncoder, paddle_class=PaddleEncoder, **given) -> Twins:
    """Build an encoder pair whose inputs are keywords."""
    pair = encoder(torch_class, paddle_class, **given)
    return replace(pair, inputs=dict(zip(("x", "keep"), batch(), strict=True)))


def large(**given) -> Twins:
    """Build an encoder pair whose states are in the thousands."""
    pair = encoder(**given)
    with torch.no_grad():
        pair.torch_model.project.weight *= 3e3
        for it in pair.torch_model.blocks:
            it.ffn.narrow.weight *= 1e3
    return pair


FAITHFUL = [
    case("hand-written alike", encoder),
    case("pre-norm", partial(encoder, pre_norm=True)),
    case("no loss given", partial(encoder, losses={})),
    case("torch's own encoder, by hand", partial(encoder, TorchStock)),
    case("torch's own pre-norm encoder, by hand", partial(encoder, TorchStock, pre_norm=True)),
    case("torch's own with nested tensors", partial(encoder, TorchNested, PaddleStock)),
    case("both frameworks' own", partial(encoder, TorchStock, PaddleStock)),
    case("both frameworks' own, pre-norm", partial(encoder, TorchStock, PaddleStock, pre_norm=True)),
    case("by hand, paddle's own encoder", partial(encoder, TorchEncoder, PaddleStock)),
    case("by hand, paddle's own, mask of int", partial(
        encoder, TorchEncoder, PaddleStock,
        change=override("", additive=lambda self, keep: keep[:, None, None].astype("int64")))),
    case("by hand, paddle's own, mask of bool", partial(
        encoder, TorchEncoder, PaddleStock,
        change=override("", additive=lambda self, keep: keep[:, None, None] > 0))),
    case("time first inside", partial(encoder, TorchTimeFirst, dropout=0.0)),
    case("time first inside, paddle's own", partial(
        encoder, TorchTimeFirst, PaddleStock, dropout=0.0)),
    case("fused and fused attention, split and explicit", partial(encoder, TorchWithFused)),
    case("fused both", partial(
        encoder, TorchWithFused, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.1))),
    case("split, fused", partial(encoder, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.1))),
    case("torch's own, fused", partial(
        encoder, TorchStock, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.1))),
    case("paddle's own attention function", partial(
        encoder, dropout=0.0, change=override(*ATTENTIONS, forward=PaddleOwnAttention.forward))),
    case("numbered projections", partial(
        encoder, paddle_rules=NUMBERED, change=_attentions(PaddleNumbered, 0.1))),
    case("projections called in another order", partial(
        encoder, change=override(*ATTENTIONS, forward=_called_otherwise))),
    case("boolean mask of -inf", partial(
        encoder, change=override(*ATTENTIONS, scores=_where_scores))),
    case("mask of -1e4, scaled query", partial(
        encoder, change=override(*ATTENTIONS, scores=_filled_scores))),
    case("dropout as a function", partial(encoder, change=_without_dropout_layers)),
    case("unused pooler in the port", partial(encoder, change=_unused_pooler)),
    case("one block three times", partial(encoder, TorchShared, PaddleShared)),
    case("one block under three names", partial(encoder, TorchShared, PaddleListed)),
    case("dict of states", partial(encoder, TorchStates, PaddleStates)),
    case("dict and tuple of states", partial(
        encoder, TorchStates, PaddleStates, port={"as_tuple": True})),
    case("keyword inputs", named),
    case("forty-eight blocks", partial(encoder, depth=48)),
    case("forty-eight blocks of torch's own", partial(encoder, TorchStock, depth=48)),
    case("large states", large),
    case("large pre-norm states", partial(large, pre_norm=True)),
]  # fmt: skip

OWN = tuple(f"encoder.layers.{n}" for n in (0, 1))
OWN_BLOCKS = OWN + BLOCKS


def _stock(name: str, culprits: Sequence[str], torch_class: type = TorchStock, **given) -> Case:
    stages = given.pop("stages", FORWARD)
    build = partial(encoder, torch_class, PaddleStock, **given)
    return case(f"paddle's own, {torch_class.__name__}: {name}", build, *culprits, stages=stages)


def _own_cases() -> Iterator[Case]:
    """Yield wrong settings of Paddle's own layers."""
    cores = (*ATTENTIONS, *(f"{own}.self_attn" for own in OWN))
    inner = (*OWN_BLOCKS, *(f"{own}.dropout" for own in OWN), *(f"{b}.ffn" for b in BLOCKS),
             *(f"{b}.ffn.dropout" for b in BLOCKS))  # fmt: skip
    norms = (*both_blocks("attention_norm"), *both_blocks("ffn_norm"))
    for side in (TorchEncoder, TorchStock):
        yield _stock("relu by default", (*OWN_BLOCKS, *(f"{b}.ffn" for b in BLOCKS)), side,
                   port={"activation": "relu"})  # fmt: skip
        yield _stock("pre-norm", OWN_BLOCKS, side, port={"normalize_before": True})
        yield _stock("post-norm", OWN_BLOCKS, side, pre_norm=True, port={"normalize_before": False})
        yield _stock("two heads", cores, side, port={"nhead": 2})
        yield _stock("eps", norms, side, port={"layer_norm_eps": 1e-12})
        yield _stock("no attention dropout", (*cores, *both_blocks("attention.dropout")), side,
                   port={"attn_dropout": 0.0})  # fmt: skip
        yield _stock("inner dropout 0.5", inner, side, port={"act_dropout": 0.5})
        yield _stock("three blocks", ("", "encoder", "blocks", "encoder.layers", *_third()), side,
                   change=_third_block, stages=())  # fmt: skip
        yield _stock("mask turned round", ("", "encoder"), side,
                   change=override("", additive=lambda self, keep: keep[:, None, None] < 1))  # fmt: skip
        yield _stock("zeros and ones added", ("", "encoder"), side,
                   change=override("", additive=lambda self, keep: keep[:, None, None]))  # fmt: skip


def _third() -> tuple[str, ...]:
    parts = ("self_attn", "norm1", "norm2", "linear1", "linear2", "self_attn.q_proj",
             "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj")  # fmt: skip
    return tuple(n for part in parts for n in below(f"encoder.layers.2.{part}", *WB)) + (
        "encoder.layers.2",
    )


def _third_block(model: Any) -> None:
    layers = model.encoder.layers
    layers.append(type(layers[0])(**layers[0]._config))


class TorchCross(torch.nn.Module):
    """Attention of queries (B, L, D) over keys of width 5 and values of width 9."""

    def __init__(self):
        super().__init__()
        self.attn = torch.nn.MultiheadAttention(D, HEADS, 0.2, kdim=5, vdim=9, batch_first=True)
        self.norm = torch.nn.LayerNorm(D)

    def forward(self, query, key, value, keep):
        x, weights = self.attn(
            query, key, value, key_padding_mask=keep == 0, average_attn_weights=False
        )
        return self.norm(query + x), weights


class PaddleCross(paddle.nn.Layer):
    def __init__(self, average: bool = False, p: float = 0.2, heads: int = HEADS):
        super().__init__()
        self.attn = paddle.nn.MultiHeadAttention(D, heads, p, kdim=5, vdim=9, need_weights=True)
        self.norm = paddle.nn.LayerNorm(D)
        self.average = average

    def masked(self, keep):
        return (1 - keep)[:, None, None] * -1e9

    def forward(self, query, key, value, keep):
        x, weights = self.attn(query, key, value, self.masked(keep))
        return self.norm(query + x), weights.mean(1) if self.average else weights


CROSS_RULES = (
    (r"attn\.in_proj_bias", tuple(f"attn.{name}_proj.bias" for name in "qkv")),
    (r"attn\.([qkv])_proj_weight", (r"attn.\1_proj.weight",)),
)


def cross(port: Mapping[str, Any] | None = None, **given) -> Twins:
    """Build a pair of attentions over other widths, which return their weights too."""
    seed()
    random = np.random.default_rng(2)
    shapes = {"query": (3, 4, D), "key": (3, 6, 5), "value": (3, 6, 9)}
    inputs = {
        name: random.standard_normal(shape).astype("float32") for name, shape in shapes.items()
    }
    inputs["keep"] = batch()[1]
    models = TorchCross(), PaddleCross(**port or {})
    return twins(*models, inputs, torch_rules=CROSS_RULES, **LOSSES | given)


def _own_width(model: Any) -> None:
    model.attn.head_dim = 2


def _cross_cases() -> Iterator[Case]:
    yield case("cross attention of other widths, with its weights", cross)
    yield case("cross: weights averaged", partial(cross, {"average": True}), "", stages=FORWARD)
    yield case("cross: dropout", partial(cross, {"p": 0.0}), "attn", stages=FORWARD)
    yield case("cross: two heads", partial(cross, {"heads": 2}), "attn", stages=FORWARD)
    yield case("cross: mask turned round", partial(
        cross, change=override("", masked=lambda self, keep: keep[:, None, None] < 1)),
        "", stages=FORWARD)  # fmt: skip
    yield case("cross: no mask", partial(
        cross, change=override("", masked=lambda self, keep: None)), "", stages=FORWARD)  # fmt: skip
    yield case("cross: output untransposed", partial(
        cross, change_weights=_untransposed("attn.out_proj.weight")),
        "attn.out_proj", "attn.out_proj.weight", stages=WEIGHTS)  # fmt: skip
    yield case("cross: bias of the query for the key", partial(
        cross, change_weights=repeat("attn.q_proj.bias", "attn.k_proj.bias")),
        *below("attn.k_proj", *WB), "attn.in_proj_bias", stages=WEIGHTS)  # fmt: skip


def _other_cases() -> Iterator[Case]:
    """Yield faults of pairs that are not plain encoders."""
    yield case("shared block: twice for three times", partial(
        encoder, TorchShared, PaddleShared, port={"times": 2}), "", stages=FORWARD)  # fmt: skip
    yield case("states: embedding state left out", partial(
        encoder, TorchStates, PaddleStates, port={"order": (1, 2)}), "", stages=FORWARD)  # fmt: skip
    yield case("states: in another order", partial(
        encoder, TorchStates, PaddleStates, port={"order": (1, 0, 2)}), "", stages=FORWARD)  # fmt: skip
    yield case("fused: rows in the order k, q, v", partial(
        encoder, TorchWithFused, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.1),
        change_weights=_fused_in_order(1, 0, 2)), *_fused_names(0), stages=WEIGHTS)  # fmt: skip
    yield case("fused: rows interleaved by head", partial(
        encoder, TorchWithFused, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.1),
        change_weights=_fused_by_head), *_fused_names(1), stages=WEIGHTS)  # fmt: skip
    yield case("fused: no dropout of the probabilities", partial(
        encoder, TorchWithFused, paddle_rules=FUSED, change=_attentions(PaddleFused, 0.0)),
        *ATTENTIONS, stages=FORWARD)  # fmt: skip
    yield case("fused: value and key trade places in the code", partial(
        encoder, TorchWithFused, paddle_rules=FUSED, change=_fused_swap),
        *ATTENTIONS, stages=FORWARD)  # fmt: skip
    yield case("numbered: key and value swapped", partial(
        encoder, paddle_rules=NUMBERED, change=_attentions(PaddleNumbered, 0.1),
        change_weights=swap("blocks.1.attention.fc1", "blocks.1.attention.fc2")),
        "blocks.1.attention", *(n for leaf in ("key", "value", "fc1", "fc2")
          for n in below(f"blocks.1.attention.{leaf}", *WB)), stages=(*WEIGHTS, *FORWARD))  # fmt: skip


def _fused_names(number: int) -> tuple[str, ...]:
    return below(f"blocks.{number}.attention.c_attn", *WB)


def _fused_in_order(*order: int) -> Change:
    def rows(array: np.ndarray) -> np.ndarray:
        parts = np.split(array, 3, axis=-1)
        return np.concatenate([parts[number] for number in order], axis=-1)

    return weight(rows, "blocks.0.attention.c_attn.weight", "blocks.0.attention.c_attn.bias")


def _fused_by_head(model: Any) -> None:
    def rows(array: np.ndarray) -> np.ndarray:
        return array.reshape(*array.shape[:-1], 3, HEADS, -1).swapaxes(-2, -3).reshape(array.shape)

    weight(rows, "blocks.1.attention.c_attn.weight", "blocks.1.attention.c_attn.bias")(model)


def _fused_swap(model: Any) -> None:
    _attentions(PaddleFused, 0.1)(model)
    override(*ATTENTIONS, forward=_fused_other_order)(model)


def _fused_other_order(self, x, keep):
    query, value, key = (self.split(it) for it in self.c_attn(x).chunk(3, axis=-1))
    probs = PF.softmax(self.scores(query, key, keep), axis=-1)
    probs = PF.dropout(probs, self.p, training=self.training)
    return self.c_proj(self.merge(paddle.matmul(probs, value)))


CASES = [*FAITHFUL, *_planted_cases(), *_own_cases(), *_cross_cases(), *_other_cases()]
