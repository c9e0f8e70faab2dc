"""Causal decoders: like GPT-2 (fused projections, tied head), and like Llama (rotary, grouped)."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from tests.pairs.case import Case, case
from tests.pairs.encoder import (
    LOSSES,
    WB,
    Change,
    Twins,
    at,
    below,
    frozen,
    override,
    repeat,
    seed,
    setting,
    swap,
    twins,
    weight,
)

import numpy as np
import paddle
import paddle.nn.functional as PF
import torch
import torch.nn.functional as TF

V, D, HEADS, KV_HEADS, WIDE, LENGTH = 31, 16, 4, 2, 24, 9
WEIGHTS, FORWARD, BACKWARD, LOSS = ("weights",), ("audit", "forward"), ("backward",), ("loss",)


class Conv1D(torch.nn.Module):
    """A linear layer whose weight is (in, out), as in GPT-2."""

    def __init__(self, wide_in: int, wide_out: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(wide_in, wide_out) * 0.1)
        self.bias = torch.nn.Parameter(torch.zeros(wide_out))

    def forward(self, x):
        return x @ self.weight + self.bias


class TorchAttention(torch.nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.c_attn = Conv1D(D, 3 * D)
        self.c_proj = Conv1D(D, D)
        self.attn_dropout = torch.nn.Dropout(dropout)
        self.resid_dropout = torch.nn.Dropout(dropout)
        seen = torch.tril(torch.ones(LENGTH, LENGTH)).bool()
        self.register_buffer("bias", seen, persistent=False)

    def forward(self, x, keep):
        B, L, _ = x.shape
        query, key, value = (
            part.view(B, L, HEADS, -1).transpose(1, 2) for part in self.c_attn(x).split(D, -1)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(D // HEADS)
        seen = self.bias[:L, :L] & (keep[:, None, None] > 0)
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        x = self.attn_dropout(scores.softmax(-1)) @ value
        return self.resid_dropout(self.c_proj(x.transpose(1, 2).reshape(B, L, D)))


class TorchMlp(torch.nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.c_fc = Conv1D(D, WIDE)
        self.c_proj = Conv1D(WIDE, D)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(TF.gelu(self.c_fc(x), approximate="tanh")))


class TorchBlock(torch.nn.Module):
    def __init__(self, dropout: float):
        super().__init__()
        self.ln_1 = torch.nn.LayerNorm(D)
        self.attn = TorchAttention(dropout)
        self.ln_2 = torch.nn.LayerNorm(D)
        self.mlp = TorchMlp(dropout)

    def forward(self, x, keep):
        x = x + self.attn(self.ln_1(x), keep)
        return x + self.mlp(self.ln_2(x))


class TorchGpt(torch.nn.Module):
    """Predicts the next of token ids (B, L), of which `keep` (B, L) is 0 for padding."""

    def __init__(self, dropout: float = 0.1, depth: int = 2):
        super().__init__()
        self.wte = torch.nn.Embedding(V, D)
        self.wpe = torch.nn.Embedding(LENGTH, D)
        self.drop = torch.nn.Dropout(dropout)
        self.h = torch.nn.ModuleList([TorchBlock(dropout) for _ in range(depth)])
        self.ln_f = torch.nn.LayerNorm(D)
        self.lm_head = torch.nn.Linear(D, V, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, ids, keep):
        positions = torch.arange(ids.shape[1], device=ids.device)
        x = self.drop(self.wte(ids) + self.wpe(positions))
        for block in self.h:
            x = block(x, keep)
        return self.lm_head(self.ln_f(x))


class PaddleAttention(paddle.nn.Layer):
    def __init__(self, dropout: float):
        super().__init__()
        self.q_proj = paddle.nn.Linear(D, D)
        self.k_proj = paddle.nn.Linear(D, D)
        self.v_proj = paddle.nn.Linear(D, D)
        self.out_proj = paddle.nn.Linear(D, D)
        self.dropout = paddle.nn.Dropout(dropout)
        self.out_dropout = paddle.nn.Dropout(dropout)
        self.scale = 1 / math.sqrt(D // HEADS)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], HEADS, -1]).transpose([0, 2, 1, 3])

    def merge(self, x):
        return x.transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[2], D])

    def seen(self, keep):
        length = keep.shape[1]
        past = paddle.tril(paddle.ones([length, length], dtype=keep.dtype))
        return past * keep[:, None, None]

    def forward(self, x, keep):
        query, key = self.split(self.q_proj(x)), self.split(self.k_proj(x))
        value = self.split(self.v_proj(x))
        scores = paddle.matmul(query, key, transpose_y=True) * self.scale
        scores = scores + (1 - self.seen(keep)) * -1e9
        x = paddle.matmul(self.dropout(PF.softmax(scores, axis=-1)), value)
        return self.out_dropout(self.out_proj(self.merge(x)))


class PaddleMlp(paddle.nn.Layer):
    def __init__(self, dropout: float):
        super().__init__()
        self.up = paddle.nn.Linear(D, WIDE)
        self.down = paddle.nn.Linear(WIDE, D)
        self.dropout = paddle.nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(PF.gelu(self.up(x), approximate=True)))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, dropout: float):
        super().__init__()
        self.norm1 = paddle.nn.LayerNorm(D)
        self.attn = PaddleAttention(dropout)
        self.norm2 = paddle.nn.LayerNorm(D)
        self.mlp = PaddleMlp(dropout)

    def forward(self, x, keep):
        x = x + self.attn(self.norm1(x), keep)
        return x + self.mlp(self.norm2(x))


class PaddleGpt(paddle.nn.Layer):
    """The port of TorchGpt: its own names, query, key and value apart, the head a product."""

    def __init__(self, dropout: float = 0.1, depth: int = 2):
        super().__init__()
        self.embed = paddle.nn.Embedding(V, D)
        self.positions = paddle.nn.Embedding(LENGTH, D)
        self.dropout = paddle.nn.Dropout(dropout)
        self.layers = paddle.nn.LayerList([PaddleBlock(dropout) for _ in range(depth)])
        self.norm = paddle.nn.LayerNorm(D)

    def embedded(self, ids):
        return self.dropout(self.embed(ids) + self.positions(paddle.arange(ids.shape[1])))

    def head(self, x):
        return paddle.matmul(x, self.embed.weight, transpose_y=True)

    def forward(self, ids, keep):
        x = self.embedded(ids)
        for block in self.layers:
            x = block(x, keep)
        return self.head(self.norm(x))


GPT_RULES = (
    (r"wte\.weight", ("embed.weight",)),
    (r"lm_head\.weight", ("lm_head.weight",)),
    (r"wpe\.weight", ("positions.weight",)),
    (r"h\.(\d+)\.ln_(\d)\.(\w+)", (r"layers.\1.norm\2.\3",)),
    (r"h\.(\d+)\.attn\.c_attn\.(\w+)", tuple(rf"layers.\1.attn.{it}_proj.\2" for it in "qkv")),
    (r"h\.(\d+)\.attn\.c_proj\.(\w+)", (r"layers.\1.attn.out_proj.\2",)),
    (r"h\.(\d+)\.mlp\.c_fc\.(\w+)", (r"layers.\1.mlp.up.\2",)),
    (r"h\.(\d+)\.mlp\.c_proj\.(\w+)", (r"layers.\1.mlp.down.\2",)),
    (r"ln_f\.(\w+)", (r"norm.\1",)),
)
HUGGING_FACE = tuple((rf"(?:transformer\.)?{pattern}", names) for pattern, names in GPT_RULES)


def batch() -> dict[str, np.ndarray]:
    """Return three sentences of six tokens, one of which ends with padding."""
    ids = np.random.default_rng(0).integers(1, V, (3, 6))
    keep = np.ones((3, 6), "float32")
    keep[1, 4:] = 0
    return {"ids": ids * keep.astype("int64"), "keep": keep}


def _next_token(output: Any, shift: int = 1) -> Any:
    """Return the entropy of each token under the scores of the one `shift` before it."""
    ids = np.random.default_rng(0).integers(1, V, (3, 6))
    here = isinstance(output, torch.Tensor)
    functional, tensor = (TF, torch.tensor) if here else (PF, paddle.to_tensor)
    logits = output[:, : 6 - shift].reshape([-1, V])
    return functional.cross_entropy(logits, tensor(ids[:, shift:].reshape([-1])))


TOKENS = {"torch_loss": _next_token, "paddle_loss": _next_token}


def gpt(dropout: float = 0.1, depth: int = 2, port: Any = PaddleGpt, **given: Any) -> Twins:
    """Build a GPT-like pair."""
    seed()
    models = TorchGpt(dropout, depth), port(dropout, depth)
    return twins(*models, batch(), torch_rules=GPT_RULES, **TOKENS | given)


class PaddleTied(PaddleGpt):
    """The head is a layer that holds the table itself, and the mask a buffer."""

    def __init__(self, dropout: float = 0.1, depth: int = 2):
        super().__init__(dropout, depth)
        self.lm_head = PaddleHead(self.embed.weight)
        past = paddle.tril(paddle.ones([LENGTH, LENGTH]))
        self.register_buffer("past", past, persistable=False)

    def head(self, x):
        return self.lm_head(x)


class PaddleHead(paddle.nn.Layer):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return paddle.matmul(x, self.weight, transpose_y=True)


class TorchHuggingFace(torch.nn.Module):
    """Hugging Face's GPT-2, its logits alone."""

    def __init__(self, attention: str):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        sizes = {"vocab_size": V, "n_positions": LENGTH, "n_embd": D, "n_inner": WIDE}
        options = {"n_layer": 2, "n_head": HEADS, "attn_implementation": attention}
        model = GPT2LMHeadModel(GPT2Config(**sizes, **options, use_cache=False))
        self.transformer, self.lm_head = model.transformer, model.lm_head

    def forward(self, ids, keep):
        return self.lm_head(self.transformer(ids, attention_mask=keep.long())[0])


def hugging_face(attention: str = "eager", **given: Any) -> Twins:
    """Build Hugging Face's GPT-2 and the port with its own names."""
    seed()
    models = TorchHuggingFace(attention), PaddleGpt()
    return twins(*models, batch(), torch_rules=HUGGING_FACE, **TOKENS | given)


def _pairs(number: int, part: str, *leaves: str) -> tuple[str, ...]:
    """Return both sides' names of a part of a block (as the port calls it), and of its leaves."""
    theirs = {
        "norm1": "ln_1", "norm2": "ln_2", "attn.out_proj": "attn.c_proj",
        "attn.dropout": "attn.attn_dropout", "attn.out_dropout": "attn.resid_dropout",
        "mlp.up": "mlp.c_fc", "mlp.down": "mlp.c_proj",
        "attn.q_proj": "attn.c_attn", "attn.k_proj": "attn.c_attn", "attn.v_proj": "attn.c_attn",
    }  # fmt: skip
    stems = f"layers.{number}.{part}", f"h.{number}.{theirs.get(part, part)}"
    return tuple(name for stem in stems for name in below(stem.rstrip("."), *leaves))


ATTNS, MLPS = tuple(f"layers.{n}.attn" for n in (0, 1)), tuple(f"layers.{n}.mlp" for n in (0, 1))
BLOCKS = ("layers.0", "layers.1")


def _every(part: str) -> tuple[str, ...]:
    return _pairs(0, part) + _pairs(1, part)


def _attend(self, x, keep, roles="qkv", axis=-1, detached=""):
    parts = [self.split(getattr(self, f"{role}_proj")(x)) for role in roles]
    query, key, value = (
        part.detach() if role in detached else part for role, part in zip("qkv", parts, strict=True)
    )
    scores = paddle.matmul(query, key, transpose_y=True) * self.scale
    scores = scores + (1 - self.seen(keep)) * -1e9
    x = paddle.matmul(self.dropout(PF.softmax(scores, axis=axis)), value)
    return self.out_dropout(self.out_proj(self.merge(x)))


def _attention(*paths: str, **given: Any) -> Change:
    return override(*paths or ATTNS, forward=lambda *a: _attend(*a, **given))


def _past(diagonal: int | None, padded: bool = True) -> Change:
    def seen(self, keep):
        past = paddle.ones([keep.shape[1], keep.shape[1]], dtype=keep.dtype)
        past = past if diagonal is None else paddle.tril(past, diagonal)
        return past * keep[:, None, None] if padded else past[None, None]

    return override(*ATTNS, seen=seen)


def _future(self, keep):
    past = paddle.triu(paddle.ones([keep.shape[1], keep.shape[1]], dtype=keep.dtype))
    return past * keep[:, None, None]


def _erf_mlp(self, x):
    return self.dropout(self.down(PF.gelu(self.up(x))))


def _dropped_inside(self, x):
    return self.down(self.dropout(PF.gelu(self.up(x), approximate=True)))


def _post_norm(self, x, keep):
    x = self.norm1(x + self.attn(x, keep))
    return self.norm2(x + self.mlp(x))


def _parallel(self, x, keep):
    return x + self.attn(self.norm1(x), keep) + self.mlp(self.norm2(x))


def _one_norm(self, x, keep):
    x = x + self.attn(self.norm1(x), keep)
    return x + self.mlp(self.norm1(x))


def _normed_residual(self, x, keep):
    x = x + self.attn(self.norm1(x), keep)
    normed = self.norm2(x)
    return normed + self.mlp(normed)


def _embedded(**given: Any) -> Change:
    def embedded(self, ids):
        positions = paddle.arange(ids.shape[1]) + given.get("first", 0)
        if given.get("backwards"):
            positions = positions.flip(0)
        words = self.embed(ids) * given.get("scale", 1.0)
        if given.get("detached"):
            words = words.detach()
        x = words if given.get("unplaced") else words + self.positions(positions)
        return x if given.get("undropped") else self.dropout(x)

    return override("", embedded=embedded)


def _unnormed(self, ids, keep):
    x = self.embedded(ids)
    for block in self.layers:
        x = block(x, keep)
    return self.head(x)


def _normed_each_time(self, ids, keep):
    x = self.embedded(ids)
    for block in self.layers:
        x = self.norm(block(x, keep))
    return self.head(x)


def _reversed_blocks(self, ids, keep):
    x = self.embedded(ids)
    for number in (1, 0):
        x = self.layers[number](x, keep)
    return self.head(self.norm(x))


def _detached_head(self, x):
    return paddle.matmul(x, self.embed.weight.detach(), transpose_y=True)


def _scaled_head(self, x):
    return PaddleGpt.head(self, x) * D**-0.5


def _own_head(model: Any) -> None:
    model.lm_head = PaddleHead(model.embed.weight)
    del model.lm_head.weight
    model.lm_head.weight = model.lm_head.create_parameter([V, D])
    model.__class__ = type("PaddleGpt", (PaddleGpt,), {"head": lambda self, x: self.lm_head(x)})


def _second_in_eval(self):
    paddle.nn.Layer.train(self)
    self.layers[1].mlp.eval()


def _code(
    name: str, change: Change, *culprits: str, stages=FORWARD, build: Any = gpt, **given
) -> Case:
    return case(name, partial(build, change=change, **given), *culprits, stages=stages)


def _weights(name: str, change: Change, *culprits: str, build: Any = gpt) -> Case:
    return case(name, partial(build, change_weights=change), *culprits, stages=WEIGHTS)


def _gpt_weight_cases() -> Iterator[Case]:
    def fused(number: int, *roles: str) -> tuple[str, ...]:
        return tuple(n for role in roles for n in _pairs(number, f"attn.{role}_proj", *WB))

    projection = "layers.{}.attn.{}_proj".format
    yield _weights("Conv1D turned as a Linear", weight(np.transpose, "layers.0.attn.out_proj.weight"),
                   *_pairs(0, "attn.out_proj", *WB))  # fmt: skip
    yield _weights("query of c_attn turned", weight(np.transpose, projection(1, "q") + ".weight"),
                   *fused(1, "q"))  # fmt: skip
    yield _weights(
        "c_attn as k, q, v", swap(projection(0, "q"), projection(0, "k")), *fused(0, *"qk")
    )
    yield _weights(
        "c_attn as q, v, k", swap(projection(1, "v"), projection(1, "k")), *fused(1, *"kv")
    )
    yield _weights("biases of q in k", repeat(f"{projection(0, 'q')}.bias", f"{projection(0, 'k')}.bias"),
                   *fused(0, "k"))  # fmt: skip
    yield _weights("head's rows dealt round", weight(_dealt, f"{projection(0, 'v')}.weight"),
                   *fused(0, "v"))  # fmt: skip
    yield _weights("positions off by one", weight(partial(np.roll, shift=1, axis=0), "positions.weight"),
                   *below("positions", "weight"), *below("wpe", "weight"))  # fmt: skip
    yield _weights("tokens off by one", weight(partial(np.roll, shift=-1, axis=0), "embed.weight"),
                   *(n for it in ("embed", "wte", "lm_head") for n in below(it, "weight")))  # fmt: skip
    yield _weights("norms exchanged", swap("layers.1.norm1", "layers.1.norm2"),
                   *_pairs(1, "norm1", *WB), *_pairs(1, "norm2", *WB))  # fmt: skip
    yield _weights("last norm left as made", weight(np.ones_like, "norm.weight"),
                   *below("norm", *WB), *below("ln_f", *WB))  # fmt: skip
    parts = ("norm1", "attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj", "norm2",
             "mlp.up", "mlp.down")  # fmt: skip
    yield _weights("first block's weights twice", repeat("layers.0", "layers.1"),
                   *(n for part in parts for n in _pairs(1, part, *WB)))  # fmt: skip


def _dealt(array: np.ndarray) -> np.ndarray:
    return array.reshape(D, HEADS, -1).swapaxes(1, 2).reshape(D, D)


def _gpt_code_cases() -> Iterator[Case]:
    cores, mlps, blocks = _every("attn"), _every("mlp"), _every("")
    yield _code("no scale", setting(*ATTNS, scale=1.0), *cores)
    yield _code("scale 1/d", setting(*ATTNS, scale=HEADS / D), *cores)
    yield _code("scale by depth", setting(ATTNS[1], scale=0.25), *_pairs(1, "attn"))
    yield _code("sees one token ahead", _past(1), *cores)
    yield _code("does not see itself", _past(-1), *cores)
    yield _code("sees everything", _past(None), *cores)
    yield _code("sees the future alone", override(*ATTNS, seen=_future), *cores)
    yield _code("padding seen", _past(0, padded=False), *cores)
    yield _code("softmax over queries", _attention(axis=-2), *cores)
    yield _code("query as key", _attention(roles="qqv"), *cores)
    yield _code("value as key", _attention(ATTNS[1], roles="qvv"), *_pairs(1, "attn"))
    yield _code("heads merged untransposed", override(
        *ATTNS, merge=lambda self, x: x.reshape([x.shape[0], x.shape[2], D])), *cores)  # fmt: skip
    yield _code("gelu by erf", override(*MLPS, forward=_erf_mlp), *mlps)
    yield _code("post-norm", override(*BLOCKS, forward=_post_norm), *blocks)
    yield _code("parallel branches", override(*BLOCKS, forward=_parallel), *blocks)
    yield _code("first norm twice", override(BLOCKS[1], forward=_one_norm), *_pairs(1, ""))
    yield _code(
        "residual of the normed", override(BLOCKS[0], forward=_normed_residual), *_pairs(0, "")
    )
    yield _code("positions from 1", _embedded(first=1), "")
    yield _code("positions backwards", _embedded(backwards=True), "")
    yield _code("no positions", _embedded(unplaced=True), "")
    yield _code("words scaled", _embedded(scale=D**0.5), "")
    yield _code("last norm left out", override("", forward=_unnormed), "", "norm", "ln_f")
    yield _code("last norm each time", override("", forward=_normed_each_time), "", "norm", "ln_f")
    yield _code("blocks backwards", override("", forward=_reversed_blocks), "")
    yield _code("logits scaled", override("", head=_scaled_head), "", "lm_head")
    yield _code("eps 1e-12", setting("norm", _epsilon=1e-12), "norm", "ln_f")
    yield _code(
        "dropout of the embeddings left out", _embedded(undropped=True), "", "dropout", "drop"
    )
    yield _code("dropout 0.5 of the embeddings", setting("dropout", p=0.5), "dropout", "drop")
    yield _code("attention dropout left out", setting(*(f"{it}.dropout" for it in ATTNS), p=0.0),
                *cores, *_every("attn.dropout"))  # fmt: skip
    yield _code("dropout inside the mlp", override(*MLPS, forward=_dropped_inside), *mlps,
                *_every("mlp.dropout"))  # fmt: skip
    yield _code("mlp stays in eval", override("", train=_second_in_eval), *_pairs(1, "mlp"),
                *_pairs(1, "mlp.dropout"))  # fmt: skip
    tied = tuple(n for it in ("embed", "wte", "lm_head") for n in below(it, "weight"))
    yield _code("table detached in the head", override("", head=_detached_head), "", *tied,
                stages=BACKWARD)  # fmt: skip
    yield _code("words detached", _embedded(detached=True), "", *tied, stages=BACKWARD)
    yield _code("head not tied", _own_head, *tied, stages=())
    yield _code("key detached", _attention(ATTNS[0], detached="k"), *_pairs(0, "attn"),
                *_pairs(0, "attn.k_proj", *WB), stages=BACKWARD)  # fmt: skip
    yield _code("positions frozen", frozen("positions"), *below("positions", "weight"),
                *below("wpe", "weight"), stages=())  # fmt: skip
    yield case("tokens scored by their own states", partial(
        gpt, paddle_loss=partial(_next_token, shift=0)), "", stages=LOSS)  # fmt: skip
    yield case("Hugging Face's, gelu by erf", partial(
        hugging_face, change=override(MLPS[0], forward=_erf_mlp)),
        "layers.0.mlp", "transformer.h.0.mlp", "transformer.h.0.mlp.act", stages=FORWARD)  # fmt: skip
    yield case("Hugging Face's, c_attn as k, q, v", partial(
        hugging_face, change_weights=swap("layers.1.attn.q_proj", "layers.1.attn.k_proj")),
        *(n for it in "qk" for n in below(f"layers.1.attn.{it}_proj", *WB)),
        *below("transformer.h.1.attn.c_attn", *WB), stages=WEIGHTS)  # fmt: skip


def rotary_tables(base: float = 1e4, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return cosine and sine (LENGTH, head size) for halves that turn together, as float32."""
    size = D // HEADS
    angles = np.outer(np.arange(first, LENGTH + first), base ** -(np.arange(0, size, 2) / size))
    angles = np.concatenate([angles, angles], axis=1)
    return np.cos(angles).astype("float32"), np.sin(angles).astype("float32")


class TorchRmsNorm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(D))
        self.eps = 1e-5

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class TorchGrouped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj = torch.nn.Linear(D, D, bias=False)
        self.k_proj = torch.nn.Linear(D, D * KV_HEADS // HEADS, bias=False)
        self.v_proj = torch.nn.Linear(D, D * KV_HEADS // HEADS, bias=False)
        self.o_proj = torch.nn.Linear(D, D, bias=False)
        for name, table in zip(("cos", "sin"), rotary_tables(), strict=True):
            self.register_buffer(name, torch.from_numpy(table), persistent=False)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], -1, D // HEADS]).permute([0, 2, 1, 3])

    def rotate(self, x):
        one, other = x.chunk(2, dim=-1)
        turned = torch.cat([-other, one], dim=-1)
        return x * self.cos[: x.shape[2]] + turned * self.sin[: x.shape[2]]

    def grouped(self, x):
        return x.repeat_interleave(HEADS // KV_HEADS, dim=1)

    def forward(self, x, mask):
        query = self.rotate(self.split(self.q_proj(x)))
        key = self.grouped(self.rotate(self.split(self.k_proj(x))))
        value = self.grouped(self.split(self.v_proj(x)))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(D // HEADS) + mask
        x = torch.matmul(TF.softmax(scores, dim=-1), value).permute([0, 2, 1, 3])
        return self.o_proj(x.reshape([x.shape[0], x.shape[1], D]))


class TorchGated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = torch.nn.Linear(D, WIDE, bias=False)
        self.up_proj = torch.nn.Linear(D, WIDE, bias=False)
        self.down_proj = torch.nn.Linear(WIDE, D, bias=False)

    def forward(self, x):
        return self.down_proj(TF.silu(self.gate_proj(x)) * self.up_proj(x))


class TorchLlamaBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.self_attn = TorchGrouped()
        self.mlp = TorchGated()
        self.input_layernorm = TorchRmsNorm()
        self.post_attention_layernorm = TorchRmsNorm()

    def forward(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class TorchLlama(torch.nn.Module):
    def __init__(self, depth: int = 2):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(V, D)
        self.layers = torch.nn.ModuleList([TorchLlamaBlock() for _ in range(depth)])
        self.norm = TorchRmsNorm()
        self.lm_head = torch.nn.Linear(D, V, bias=False)

    def mask(self, keep):
        past = torch.tril(torch.ones([keep.shape[1]] * 2, dtype=keep.dtype))
        return (1 - past * keep[:, None, None]) * -1e9

    def forward(self, ids, keep):
        x, mask = self.embed_tokens(ids), self.mask(keep)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


class PaddleRmsNorm(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter(
            [D], default_initializer=paddle.nn.initializer.Constant(1)
        )
        self.eps = 1e-5

    def forward(self, x):
        return self.weight * x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class PaddleGrouped(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.q_proj = paddle.nn.Linear(D, D, bias_attr=False)
        self.k_proj = paddle.nn.Linear(D, D * KV_HEADS // HEADS, bias_attr=False)
        self.v_proj = paddle.nn.Linear(D, D * KV_HEADS // HEADS, bias_attr=False)
        self.o_proj = paddle.nn.Linear(D, D, bias_attr=False)
        for name, table in zip(("cos", "sin"), rotary_tables(), strict=True):
            self.register_buffer(name, paddle.to_tensor(table), persistable=False)

    def split(self, x):
        return x.reshape([x.shape[0], x.shape[1], -1, D // HEADS]).transpose([0, 2, 1, 3])

    def rotate(self, x):
        one, other = x.chunk(2, axis=-1)
        turned = paddle.concat([-other, one], axis=-1)
        return x * self.cos[: x.shape[2]] + turned * self.sin[: x.shape[2]]

    def grouped(self, x):
        return x.repeat_interleave(HEADS // KV_HEADS, axis=1)

    def forward(self, x, mask):
        query = self.rotate(self.split(self.q_proj(x)))
        key = self.grouped(self.rotate(self.split(self.k_proj(x))))
        value = self.grouped(self.split(self.v_proj(x)))
        scores = paddle.matmul(query, key, transpose_y=True) / math.sqrt(D // HEADS) + mask
        x = paddle.matmul(PF.softmax(scores, axis=-1), value).transpose([0, 2, 1, 3])
        return self.o_proj(x.reshape([x.shape[0], x.shape[1], D]))


class PaddleGated(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.gate_proj = paddle.nn.Linear(D, WIDE, bias_attr=False)
        self.up_proj = paddle.nn.Linear(D, WIDE, bias_attr=False)
        self.down_proj = paddle.nn.Linear(WIDE, D, bias_attr=False)

    def forward(self, x):
        return self.down_proj(PF.silu(self.gate_proj(x)) * self.up_proj(x))


class PaddleLlamaBlock(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.self_attn = PaddleGrouped()
        self.mlp = PaddleGated()
        self.input_layernorm = PaddleRmsNorm()
        self.post_attention_layernorm = PaddleRmsNorm()

    def forward(self, x, mask):
        x = x + self.self_attn(self.input_layernorm(x), mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class PaddleLlama(paddle.nn.Layer):
    def __init__(self, depth: int = 2):
        super().__init__()
        self.embed_tokens = paddle.nn.Embedding(V, D)
        self.layers = paddle.nn.LayerList([PaddleLlamaBlock() for _ in range(depth)])
        self.norm = PaddleRmsNorm()
        self.lm_head = paddle.nn.Linear(D, V, bias_attr=False)

    def mask(self, keep):
        past = paddle.tril(paddle.ones([keep.shape[1]] * 2, dtype=keep.dtype))
        return (1 - past * keep[:, None, None]) * -1e9

    def forward(self, ids, keep):
        x, mask = self.embed_tokens(ids), self.mask(keep)
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x))


def llama(depth: int = 2, **given: Any) -> Twins:
    """Build a Llama-like pair."""
    seed()
    return twins(TorchLlama(depth), PaddleLlama(depth), batch(), **TOKENS | given)


GROUPED = tuple(f"layers.{n}.self_attn" for n in (0, 1))
GATED = tuple(f"layers.{n}.mlp" for n in (0, 1))
RMS_NORMS = tuple(
    f"layers.{n}.{it}_layernorm" for n in (0, 1) for it in ("input", "post_attention")
) + ("norm",)


def _rotate_pairs(self, x):
    one, other = x[..., ::2], x[..., 1::2]
    turned = paddle.stack([-other, one], axis=-1).reshape(x.shape)
    return x * self.cos[: x.shape[2]] + turned * self.sin[: x.shape[2]]


def _rotate_back(self, x):
    one, other = x.chunk(2, axis=-1)
    turned = paddle.concat([other, -one], axis=-1)
    return x * self.cos[: x.shape[2]] + turned * self.sin[: x.shape[2]]


def _rotate_across(self, x):
    one, other = x.chunk(2, axis=-1)
    turned = paddle.concat([other, one], axis=-1)
    return x * self.cos[: x.shape[2]] + turned * self.sin[: x.shape[2]]


def _tables(*paths: str, **given: Any) -> Change:
    def change(model: Any) -> None:
        for path in paths or GROUPED:
            for name, table in zip(("cos", "sin"), rotary_tables(**given), strict=True):
                setattr(at(model, path), name, paddle.to_tensor(table))

    return change


def _tiled(self, x):
    return paddle.concat([x] * (HEADS // KV_HEADS), axis=1)


def _grouped(rotated: str = "qk", scale: float = 0.5, detached: bool = False) -> Any:
    def forward(self, x, mask):
        parts = {role: self.split(getattr(self, f"{role}_proj")(x)) for role in "qkv"}
        for role in rotated:
            parts[role] = self.rotate(parts[role])
        key, value = self.grouped(parts["k"]), self.grouped(parts["v"])
        value = value.detach() if detached else value
        scores = paddle.matmul(parts["q"], key, transpose_y=True) * scale + mask
        x = paddle.matmul(PF.softmax(scores, axis=-1), value).transpose([0, 2, 1, 3])
        return self.o_proj(x.reshape([x.shape[0], x.shape[1], D]))

    return forward


def _centred(self, x):
    x = x - x.mean(-1, keepdim=True)
    return PaddleRmsNorm.forward(self, x)


def _gain_above_one(self, x):
    return PaddleRmsNorm.forward(self, x) * (1 + self.weight) / self.weight


def _eps_outside(self, x):
    return self.weight * x / (x.pow(2).mean(-1, keepdim=True).sqrt() + self.eps)


def _gate_on_up(self, x):
    return self.down_proj(self.gate_proj(x) * PF.silu(self.up_proj(x)))


def _gelu_gate(self, x):
    return self.down_proj(PF.gelu(self.gate_proj(x)) * self.up_proj(x))


def _sigmoid_gate(self, x):
    return self.down_proj(PF.sigmoid(self.gate_proj(x)) * self.up_proj(x))


def _llama_post_norm(self, x, mask):
    x = x + self.self_attn(self.input_layernorm(x), mask)
    return x + self.mlp(self.input_layernorm(x))


def _llama_normed_residual(self, x, mask):
    x = self.input_layernorm(x)
    x = x + self.self_attn(x, mask)
    return x + self.mlp(self.post_attention_layernorm(x))


def _llama_mask(diagonal: int = 0, sign: float = -1e9, padded: bool = True) -> Change:
    def mask(self, keep):
        past = paddle.tril(paddle.ones([keep.shape[1]] * 2, dtype=keep.dtype), diagonal)
        kept = past * keep[:, None, None] if padded else past[None, None]
        return (1 - kept) * sign

    return override("", mask=mask)


def _llama_forward(**given: Any) -> Change:
    def forward(self, ids, keep):
        x, mask = self.embed_tokens(ids) * given.get("scale", 1.0), self.mask(keep)
        for number in given.get("order", (0, 1)):
            x = self.layers[number](x, mask)
        x = x if given.get("unnormed") else self.norm(x)
        if given.get("tied"):
            return paddle.matmul(x, self.embed_tokens.weight, transpose_y=True)
        return self.lm_head(x[:, ::-1] if given.get("reversed") else x)

    return override("", forward=forward)


def _llama_cases() -> Iterator[Case]:
    llama_code, llama_weights = partial(_code, build=llama), partial(_weights, build=llama)
    yield llama_code("rotary by pairs", override(*GROUPED, rotate=_rotate_pairs), *GROUPED)
    yield llama_code("rotary backwards", override(*GROUPED, rotate=_rotate_back), *GROUPED)
    yield llama_code("rotary without the sign", override(*GROUPED, rotate=_rotate_across), *GROUPED)
    buffers = (*GROUPED, *(f"{path}.{name}" for path in GROUPED for name in ("cos", "sin")))
    yield llama_code("rotary base", _tables(base=1e3), *buffers)
    second = below(GROUPED[1], "cos", "sin")
    yield llama_code("rotary base of the second layer", _tables(GROUPED[1], base=5e5), *second)
    yield llama_code(
        "rotary of the query alone", override(*GROUPED, forward=_grouped("q")), *GROUPED
    )
    yield llama_code(
        "rotary of the value too", override(*GROUPED, forward=_grouped("qkv")), *GROUPED
    )
    yield llama_code("no rotary", override(*GROUPED, forward=_grouped("")), *GROUPED)
    yield llama_code("no scale, Llama", override(*GROUPED, forward=_grouped(scale=1.0)), *GROUPED)
    yield llama_code("groups tiled", override(*GROUPED, grouped=_tiled), *GROUPED)
    yield llama_code("value detached", override(GROUPED[0], forward=_grouped(detached=True)),
                     GROUPED[0], *below(f"{GROUPED[0]}.v_proj", "weight"), stages=BACKWARD)  # fmt: skip
    yield llama_code("norm centred", override(*RMS_NORMS, forward=_centred), *RMS_NORMS)
    yield llama_code("norm's gain above one", override("norm", forward=_gain_above_one), "norm")
    yield llama_code("norm's eps outside", override(*RMS_NORMS, forward=_eps_outside), *RMS_NORMS)
    yield llama_code("norm's eps 1e-6", setting(*RMS_NORMS, eps=1e-6), *RMS_NORMS)
    yield llama_code("norm's eps 1e-6 in the last", setting("norm", eps=1e-6), "norm")
    yield llama_code("gate on the other half", override(*GATED, forward=_gate_on_up), *GATED)
    yield llama_code("gate of gelu", override(*GATED, forward=_gelu_gate), *GATED)
    yield llama_code("gate of sigmoid", override(GATED[1], forward=_sigmoid_gate), GATED[1])
    blocks = ("layers.0", "layers.1")
    yield llama_code("input norm for both", override(*blocks, forward=_llama_post_norm), *blocks)
    yield llama_code("residual of the normed, Llama",
                     override(blocks[1], forward=_llama_normed_residual), blocks[1])  # fmt: skip
    yield llama_code("sees one token ahead, Llama", _llama_mask(1), "")
    yield llama_code("padding seen, Llama", _llama_mask(padded=False), "")
    yield llama_code("mask of the other sign", _llama_mask(sign=1e9), "")
    yield llama_code("mask of -1", _llama_mask(sign=-1.0), "")
    yield llama_code("words scaled, Llama", _llama_forward(scale=4.0), "")
    yield llama_code("blocks backwards, Llama", _llama_forward(order=(1, 0)), "")
    yield llama_code("first block twice", _llama_forward(order=(0, 0)), "")
    yield llama_code("no last norm", _llama_forward(unnormed=True), "", "norm")
    yield llama_code("head tied", _llama_forward(tied=True), "", "lm_head")
    gates, projections = (f"{GATED[0]}.gate_proj", f"{GATED[0]}.up_proj"), (
        f"{GROUPED[1]}.k_proj", f"{GROUPED[1]}.v_proj")  # fmt: skip
    for name, both in (("gate and up", gates), ("key and value", projections)):
        culprits = tuple(n for it in both for n in below(it, "weight"))
        yield llama_weights(f"{name} exchanged", swap(*both), *culprits)
    yield llama_weights("query as for rotary by pairs", weight(_dealt_pairs, f"{GROUPED[0]}.q_proj.weight"),
                        *below(f"{GROUPED[0]}.q_proj", "weight"))  # fmt: skip
    yield llama_weights("o_proj untransposed", weight(np.transpose, f"{GROUPED[0]}.o_proj.weight"),
                        *below(f"{GROUPED[0]}.o_proj", "weight"))  # fmt: skip
    yield llama_weights("norms of a block exchanged", swap(RMS_NORMS[0], RMS_NORMS[1]),
                        *below(RMS_NORMS[0], "weight"), *below(RMS_NORMS[1], "weight"))  # fmt: skip


def _dealt_pairs(array: np.ndarray) -> np.ndarray:
    """Put beside each other, head by head, the features that turn together."""
    return array.reshape(D, HEADS, 2, -1).swapaxes(-1, -2).reshape(D, D)


class PaddlePacked(PaddleGrouped):
    """Query, key and value from one Linear; the sines are computed when they are needed."""

    def __init__(self):
        paddle.nn.Layer.__init__(self)
        self.qkv_proj = paddle.nn.Linear(D, D * (HEADS + 2 * KV_HEADS) // HEADS, bias_attr=False)
        self.o_proj = paddle.nn.Linear(D, D, bias_attr=False)

    def rotate(self, x):
        self.cos, self.sin = (paddle.to_tensor(table) for table in rotary_tables())
        return PaddleGrouped.rotate(self, x)

    def forward(self, x, mask):
        sizes = [D, D * KV_HEADS // HEADS, D * KV_HEADS // HEADS]
        query, key, value = (self.split(it) for it in self.qkv_proj(x).split(sizes, axis=-1))
        key, value = self.grouped(self.rotate(key)), self.grouped(value)
        scores = paddle.matmul(self.rotate(query), key, transpose_y=True) * 0.5 + mask
        x = paddle.matmul(PF.softmax(scores, axis=-1), value).transpose([0, 2, 1, 3])
        return self.o_proj(x.reshape([x.shape[0], x.shape[1], D]))


def _wide_gate(self, x):
    gate, up = self.gate_up_proj(x).chunk(2, axis=-1)
    return self.down_proj(gate * PF.sigmoid(gate) * up)


def _packed_gates(model: Any) -> None:
    for layer in model.layers:
        layer.mlp.gate_up_proj = paddle.nn.Linear(D, 2 * WIDE, bias_attr=False)
        del layer.mlp.gate_proj, layer.mlp.up_proj
    override(*GATED, forward=_wide_gate)(model)


def _packed_attention(model: Any) -> None:
    for layer in model.layers:
        layer.self_attn = PaddlePacked()


QKV_ROWS = (
    (r"(.*)\.qkv_proj\.weight", (r"\1.q.0", r"\1.q.1", r"\1.k_proj.weight", r"\1.v_proj.weight")),
)
Q_ROWS = ((r"(.*)\.q_proj\.weight", (r"\1.q.0", r"\1.q.1")),)
GATE_ROWS = ((r"(.*)\.gate_up_proj\.weight", (r"\1.gate_proj.weight", r"\1.up_proj.weight")),)


def _scored(self, ids, keep):
    return {"scores": PaddleGpt.forward(self, ids, keep), "past": None}


def _named_otherwise() -> Twins:
    """Leave the names that no rule can guess to `name_map`."""
    pair = llama()
    for layer in pair.paddle_model.layers:
        layer.a, layer.b = layer.input_layernorm, layer.post_attention_layernorm
        del layer.input_layernorm, layer.post_attention_layernorm
    override("layers.0", "layers.1", forward=_by_letters)(pair.paddle_model)
    names = {f"layers.{n}.{it}": f"layers.{n}.{letter}" for n in (0, 1)
             for it, letter in (("input_layernorm", "a"), ("post_attention_layernorm", "b"))}  # fmt: skip
    rules = tuple((rf"{it}\.weight", (f"{letter}.weight",)) for it, letter in names.items())
    return replace(pair, options=dict(pair.options) | {"name_map": names}, torch_rules=rules)


def _by_letters(self, x, mask):
    x = x + self.self_attn(self.a(x), mask)
    return x + self.mlp(self.b(x))


FAITHFUL = [
    case("GPT: Conv1D and Linear, fused and split, tied", gpt),
    case("GPT: the head a layer that holds the table", partial(gpt, port=PaddleTied)),
    case("GPT: without a loss", lambda: replace(gpt(), options={})),
    case("GPT: output in a dict with None", partial(
        gpt, change=override("", forward=_scored), paddle_loss=lambda out: _next_token(out["scores"]))),
    case("GPT: twenty-four blocks", partial(gpt, depth=24)),
    case("GPT: frozen on both sides", lambda: _frozen_both()),
    case("Hugging Face's GPT-2", hugging_face),
    case("Hugging Face's GPT-2, fused attention", partial(hugging_face, attention="sdpa")),
    case("Llama", llama),
    case("Llama: square loss", partial(llama, **LOSSES)),
    case("Llama: query, key and value packed, sines computed", partial(
        llama, change=_packed_attention, paddle_rules=QKV_ROWS, torch_rules=Q_ROWS)),
    case("Llama: gate and up packed", partial(
        llama, change=_packed_gates, paddle_rules=GATE_ROWS)),
    case("Llama: names by name_map", _named_otherwise),
    case("Llama: sixteen blocks", partial(llama, depth=16)),
]  # fmt: skip


def _frozen_both() -> Twins:
    pair = gpt(change=frozen("positions"))
    pair.torch_model.wpe.weight.requires_grad_(False)
    return pair


CASES = [*FAITHFUL, *_gpt_weight_cases(), *_gpt_code_cases(), *_llama_cases()]
