"""BERT: the project's own twins under every mistake of a port, and Hugging Face's beside them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from models import pd_bert, pt_bert
from models.bert_config import BertConfig
from tests.pairs.case import Case, case
from tests.pairs.encoder import (
    LOSSES,
    WB,
    Change,
    Twins,
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

CONFIG = BertConfig(
    vocab_size=30,
    hidden_size=12,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=20,
    max_position_embeddings=10,
    num_labels=4,
)
LABELS = np.array([1, 3, 0])
WORDS = "BertForMaskedLM"
CLASSES = "BertForSequenceClassification"


def batch() -> dict[str, np.ndarray]:
    """Return three two-segment sentences of seven tokens, two of them padded with token 0."""
    ids = np.random.default_rng(0).integers(1, 30, (3, 7))
    mask = np.ones((3, 7), "int64")
    mask[1, 5:] = mask[2, 4:] = 0
    types = np.array([[0, 0, 0, 1, 1, 1, 1]] * 3) * mask
    return {"input_ids": ids * mask, "attention_mask": mask, "token_type_ids": types}


def _torch_entropy(output: Any, **options: Any) -> torch.Tensor:
    return TF.cross_entropy(output, torch.tensor(LABELS), **options)


def _paddle_entropy(output: Any, **options: Any) -> paddle.Tensor:
    return PF.cross_entropy(output, paddle.to_tensor(LABELS), **options)


def _weighted_entropy(output: paddle.Tensor) -> paddle.Tensor:
    weight = paddle.to_tensor([1.0, 2.0, 1.0, 1.0], dtype=output.dtype)
    return _paddle_entropy(output, weight=weight)


def bert(
    model: str = CLASSES,
    port: dict[str, Any] | None = None,
    config: BertConfig = CONFIG,
    **given: Any,
) -> Twins:
    """Build the pair of `model`; `port` says in what the port's configuration differs."""
    seed()
    torch_model = getattr(pt_bert, model)(config)
    paddle_model = getattr(pd_bert, model)(replace(config, **port or {}))
    losses = LOSSES
    if model == CLASSES:
        losses = {"torch_loss": _torch_entropy, "paddle_loss": _paddle_entropy}
    return twins(torch_model, paddle_model, batch(), **losses | given)


EMBEDDINGS, POOLER = "bert.embeddings", "bert.pooler"
LAYERS = tuple(f"bert.encoder.layer.{n}" for n in (0, 1))
CORES = tuple(f"{layer}.attention.self" for layer in LAYERS)
NORMS = (
    f"{EMBEDDINGS}.LayerNorm",
    *(f"{layer}.{part}.LayerNorm" for layer in LAYERS for part in ("attention.output", "output")),
)
PARTS = ("attention.self.query", "attention.self.key", "attention.self.value",
         "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense",
         "output.dense", "output.LayerNorm")  # fmt: skip
WEIGHTS, FORWARD, BACKWARD, LOSS = ("weights",), ("audit", "forward"), ("backward",), ("loss",)


def _attend(self, hidden, mask, axis=-1, scale=0.5, merge=None, roles="qkv", detach=""):
    projections = {"q": self.query, "k": self.key, "v": self.value}
    parts = [self.split_heads(projections[role](hidden)) for role in roles]
    query, key, value = (
        part.detach() if role in detach else part for role, part in zip("qkv", parts, strict=True)
    )
    scores = paddle.matmul(query, key, transpose_y=True) * scale + mask
    probs = self.dropout(PF.softmax(scores, axis=axis))
    context = paddle.matmul(probs, value)
    return merge(context) if merge else self.merge_heads(context)


def _attention(*paths: str, **given: Any) -> Change:
    return override(*paths or CORES, forward=lambda *arguments: _attend(*arguments, **given))


def _embed(self, input_ids, token_type_ids=None, position_ids=None, **given):
    types = self.token_type_embeddings(token_type_ids)
    positions = paddle.arange(input_ids.shape[1]).unsqueeze(0) + given.get("first", 0)
    words = self.word_embeddings(input_ids) * given.get("scale", 1.0)
    if given.get("types") == 0:
        types = paddle.zeros_like(types)
    rows = words + types + self.position_embeddings(positions)
    if given.get("dropped_first"):
        return self.LayerNorm(self.dropout(rows))
    rows = rows if given.get("unnormed") else self.LayerNorm(rows)
    return self.dropout(rows)


def _embeddings(**given: Any) -> Change:
    return override(EMBEDDINGS, forward=lambda *a, **k: _embed(*a, **k, **given))


def _last_layer_left_out(self, hidden, mask):
    return self.layer[0](hidden, mask)


def _layers_backwards(self, hidden, mask):
    return self.layer[0](self.layer[1](hidden, mask), mask)


def _second_unmasked(self, hidden, mask):
    return self.layer[1](self.layer[0](hidden, mask), mask * 0)


def _detached_between(self, hidden, mask):
    return self.layer[1](self.layer[0](hidden, mask).detach(), mask)


def _residual_of_attention_input(self, hidden, mask):
    attended = self.attention(hidden, mask)
    return self.output(self.intermediate(attended), hidden)


def _intermediate_of_input(self, hidden, mask):
    attended = self.attention(hidden, mask)
    return self.output(self.intermediate(hidden), attended)


def _no_residual(self, context, residual):
    return self.LayerNorm(self.dropout(self.dense(context)))


def _normed_before_residual(self, context, residual):
    return self.LayerNorm(self.dropout(self.dense(context))) + residual


def _dropped_after_residual(self, context, residual):
    return self.LayerNorm(self.dropout(self.dense(context) + residual))


def _dropped_after_norm(self, context, residual):
    return self.dropout(self.LayerNorm(self.dense(context) + residual))


def _last_token(self, hidden):
    return self.activation(self.dense(hidden[:, -1]))


def _mean_token(self, hidden):
    return self.activation(self.dense(hidden.mean(1)))


def _without_tanh(self, hidden):
    return self.dense(hidden[:, 0])


def _norm_before_activation(self, hidden):
    return self.transform_act_fn(self.LayerNorm(self.dense(hidden)))


def _without_norm(self, hidden):
    return self.transform_act_fn(self.dense(hidden))


def _first_token_unpooled(self, input_ids, attention_mask, token_type_ids):
    hidden, _ = self.bert(input_ids, attention_mask, token_type_ids)
    return self.classifier(self.dropout(hidden[:, 0]))


def _mask_left_behind(self, input_ids, attention_mask, token_type_ids):
    _, pooled = self.bert(input_ids, None, token_type_ids)
    return self.classifier(self.dropout(pooled))


def _types_left_behind(self, input_ids, attention_mask, token_type_ids):
    _, pooled = self.bert(input_ids, attention_mask)
    return self.classifier(self.dropout(pooled))


def _types_as_mask(self, input_ids, attention_mask, token_type_ids):
    _, pooled = self.bert(input_ids, token_type_ids, attention_mask)
    return self.classifier(self.dropout(pooled))


def _undropped(self, input_ids, attention_mask, token_type_ids):
    _, pooled = self.bert(input_ids, attention_mask, token_type_ids)
    return self.classifier(pooled)


def _dropped_twice(self, input_ids, attention_mask, token_type_ids):
    _, pooled = self.bert(input_ids, attention_mask, token_type_ids)
    return self.classifier(self.dropout(self.dropout(pooled)))


def _pooled_detached(self, input_ids, attention_mask, token_type_ids):
    with paddle.no_grad():
        _, pooled = self.bert(input_ids, attention_mask, token_type_ids)
    return self.classifier(self.dropout(pooled))


def _probabilities(self, *arguments, **named):
    return PF.softmax(pd_bert.BertForSequenceClassification.forward(self, *arguments, **named))


def _in_half(self, hidden):
    narrow = self.dense(hidden).astype("float16").astype(hidden.dtype)
    return self.intermediate_act_fn(narrow)


def _embeddings_in_eval(self):
    paddle.nn.Layer.train(self)
    self.bert.embeddings.eval()


def _down_one(array: np.ndarray) -> np.ndarray:
    return np.roll(array, 1, axis=0)


def _old_names(model: Any) -> None:
    """Leave every norm as made: the checkpoint called its parameters gamma and beta."""
    for path in NORMS:
        weight(np.ones_like, f"{path}.weight")(model)
        weight(np.zeros_like, f"{path}.bias")(model)


def _zero_rows(*paths: str) -> Change:
    return weight(lambda array: np.concatenate([array[:1] * 0, array[1:]]), *paths)


def _untied(model: Any) -> None:
    decoder = model.cls.predictions.decoder
    table = decoder.weight
    del decoder.weight
    decoder.weight = decoder.create_parameter(table.shape)
    decoder.weight.set_value(table)


def _detached_table(self, hidden):
    return paddle.matmul(hidden, self.weight.detach(), transpose_y=True) + self.bias


def _without_decoder_bias(self, hidden):
    return paddle.matmul(hidden, self.weight, transpose_y=True)


def _detached_words(self, input_ids):
    return PF.embedding(input_ids, self.weight).detach()


def _pad_row_learns(self, input_ids):
    return PF.embedding(input_ids, self.weight)


def _unused_bias(model: Any) -> None:
    model.classifier = paddle.nn.Linear(12, 4, bias_attr=False)


def _names(paths: tuple[str, ...], *leaves: str) -> tuple[str, ...]:
    return tuple(name for path in paths for name in below(path, *leaves))


def _weights(name: str, change: Change, *modules: str, **given: Any) -> Case:
    build = partial(bert, change_weights=change, **given)
    return case(name, build, *_names(modules, *WB), stages=WEIGHTS)


def _code(
    name: str, change: Change, *culprits: str, stages: tuple[str, ...] = FORWARD, **given
) -> Case:
    return case(name, partial(bert, change=change, **given), *culprits, stages=stages)


def _config(name: str, port: dict[str, Any], *culprits: str, **given: Any) -> Case:
    return case(name, partial(bert, port=port, **given), *culprits, stages=FORWARD)


def _weight_cases() -> Iterator[Case]:
    query, key, value = (f"{CORES[1]}.{name}" for name in ("query", "key", "value"))
    dense = f"{LAYERS[0]}.attention.output.dense"
    yield _weights("query untransposed", weight(np.transpose, f"{query}.weight"), query)
    yield _weights("attention's dense untransposed", weight(np.transpose, f"{dense}.weight"), dense)
    yield _weights("pooler untransposed", weight(np.transpose, f"{POOLER}.dense.weight"),
                   f"{POOLER}.dense")  # fmt: skip
    yield _weights("query and key swapped", swap(query, key), query, key)
    yield _weights(
        "value's weight under the key's", repeat(f"{value}.weight", f"{key}.weight"), key
    )
    yield _weights("first layer's weights twice", repeat(LAYERS[0], LAYERS[1]),
                   *(f"{LAYERS[1]}.{part}" for part in PARTS))  # fmt: skip
    yield _weights("layers' weights exchanged", swap(*LAYERS),
                   *(f"{layer}.{part}" for layer in LAYERS for part in PARTS))  # fmt: skip
    yield _weights("old names of the norms left behind", _old_names, *NORMS)
    norm = NORMS[3]
    yield _weights("gamma and beta", swap(f"{norm}.weight", f"{norm}.bias"), norm)
    yield _weights("norms of a layer exchanged", swap(NORMS[1], NORMS[2]), NORMS[1], NORMS[2])
    table = f"{EMBEDDINGS}.word_embeddings"
    yield _weights("word rows off by one", weight(_down_one, f"{table}.weight"), table)
    places = f"{EMBEDDINGS}.position_embeddings"
    yield _weights("position rows off by one", weight(_down_one, f"{places}.weight"), places)
    types = f"{EMBEDDINGS}.token_type_embeddings"
    yield _weights("token types swapped", weight(_down_one, f"{types}.weight"), types)
    yield _weights("pad row zeroed", _zero_rows(f"{table}.weight"), table)
    wide = f"{LAYERS[1]}.intermediate.dense"
    yield _weights("bias left at zero", weight(np.zeros_like, f"{wide}.bias"), wide)
    yield _weights("classifier left at random", weight(lambda a: 0.1 * a[::-1], "classifier.weight"),
                   "classifier")  # fmt: skip
    yield _weights("weights through half precision",
                   weight(lambda a: a.astype("float16").astype(a.dtype), f"{wide}.weight"), wide)  # fmt: skip
    head = "cls.predictions.transform"
    yield _weights("head's dense untransposed", weight(np.transpose, f"{head}.dense.weight"),
                   f"{head}.dense", model=WORDS)  # fmt: skip
    bias = "cls.predictions.bias"
    yield case("decoder's bias left at zero", partial(
        bert, WORDS, change_weights=weight(np.zeros_like, bias)),
        bias, "cls.predictions", *below("cls.predictions.decoder", "bias"), stages=WEIGHTS)  # fmt: skip


def _setting_cases() -> Iterator[Case]:
    acts = tuple(f"{layer}.intermediate" for layer in LAYERS)
    acts += tuple(f"{act}.intermediate_act_fn" for act in acts)
    drops = (f"{EMBEDDINGS}.dropout", *(f"{layer}.attention.output.dropout" for layer in LAYERS),
             *(f"{layer}.output.dropout" for layer in LAYERS))  # fmt: skip
    probs = tuple(f"{core}.dropout" for core in CORES)
    yield _config("eps 1e-5", {"layer_norm_eps": 1e-5}, *NORMS)
    yield _config("eps 1e-6", {"layer_norm_eps": 1e-6}, *NORMS)
    yield _code("eps 1e-5 in one norm", setting(NORMS[4], _epsilon=1e-5), NORMS[4])
    yield _config("tanh gelu", {"hidden_act": "gelu_new"}, *acts)
    yield _config("erf gelu", {"hidden_act": "gelu"}, *acts,
                  config=replace(CONFIG, hidden_act="gelu_new"))  # fmt: skip
    yield _config("relu", {"hidden_act": "relu"}, *acts)
    yield _config("hidden dropout", {"hidden_dropout_prob": 0.5, "classifier_dropout": 0.1}, *drops)
    yield _config("classifier dropout", {"classifier_dropout": 0.5}, "dropout")
    yield _config("attention dropout", {"attention_probs_dropout_prob": 0.3}, *probs, *CORES)
    yield _config("no attention dropout", {"attention_probs_dropout_prob": 0.0}, *probs, *CORES)
    yield _config("two heads", {"num_attention_heads": 2}, *CORES)
    words = f"{EMBEDDINGS}.word_embeddings"
    yield case("pad token 1", partial(bert, port={"pad_token_id": 1}), words, f"{words}.weight",
               stages=("audit", "backward"))  # fmt: skip
    yield _code("dropout scaled in eval", setting(drops[2], mode="downscale_in_infer"), drops[2])
    yield _code("dropout of whole rows", setting(drops[1], axis=1), drops[1])


def _attention_cases() -> Iterator[Case]:
    yield _code("no scale", _attention(scale=1.0), *CORES)
    yield _code("scale 1/d", _attention(scale=0.25), *CORES)
    yield _code("softmax over queries", _attention(axis=-2), *CORES)
    yield _code("heads merged untransposed",
                _attention(merge=lambda x: x.reshape([x.shape[0], x.shape[2], -1])), *CORES)  # fmt: skip
    yield _code("key as query", _attention(CORES[1], roles="kkv"), CORES[1])
    yield _code("query as value", _attention(CORES[0], roles="qkq"), CORES[0])
    for role, name in zip("qkv", ("query", "key", "value"), strict=True):
        yield _code(f"{name} detached", _attention(CORES[0], detach=role), CORES[0],
                    *below(f"{CORES[0]}.{name}", *WB), stages=BACKWARD)  # fmt: skip


def _layer_cases() -> Iterator[Case]:
    first, second = LAYERS
    yield _code(
        "layers backwards", override("bert.encoder", forward=_layers_backwards), "bert.encoder"
    )
    yield _code("last layer left out", override("bert.encoder", forward=_last_layer_left_out),
                "bert.encoder")  # fmt: skip
    yield _code("second layer unmasked", override("bert.encoder", forward=_second_unmasked),
                "bert.encoder")  # fmt: skip
    yield _code("residual of the layer's input",
                override(*LAYERS, forward=_residual_of_attention_input), *LAYERS)  # fmt: skip
    yield _code("attention by-passed", override(second, forward=_intermediate_of_input), second)
    for name, forward in (
        ("no residual", _no_residual),
        ("norm before residual", _normed_before_residual),
        ("dropout after residual", _dropped_after_residual),
        ("dropout after norm", _dropped_after_norm),
    ):
        part = f"{first}.attention.output"
        yield _code(name, override(part, forward=forward), part, f"{part}.dropout")
        part = f"{second}.output"
        yield _code(
            f"{name}, second layer", override(part, forward=forward), part, f"{part}.dropout"
        )
    yield _code("layers detached", override("bert.encoder", forward=_detached_between),
                "bert.encoder", stages=BACKWARD)  # fmt: skip


def _embedding_cases() -> Iterator[Case]:
    words = f"{EMBEDDINGS}.word_embeddings"
    yield _code("positions from 1", _embeddings(first=1), EMBEDDINGS)
    yield _code("no token types", _embeddings(types=0), EMBEDDINGS)
    yield _code("scaled words", _embeddings(scale=12**0.5), EMBEDDINGS)
    yield _code("no norm of embeddings", _embeddings(unnormed=True), EMBEDDINGS)
    yield _code("dropout before norm", _embeddings(dropped_first=True), EMBEDDINGS,
                f"{EMBEDDINGS}.dropout")  # fmt: skip
    yield _code("words detached", override(words, forward=_detached_words), words,
                f"{words}.weight", stages=BACKWARD)  # fmt: skip
    tables = (f"{EMBEDDINGS}.{kind}_embeddings" for kind in ("word", "position", "token_type"))
    names = _names((EMBEDDINGS, *tables, NORMS[0]), *WB)
    yield _code("embeddings frozen", frozen(EMBEDDINGS), *names, stages=())
    yield _code("embeddings stay in eval", override("", train=_embeddings_in_eval), EMBEDDINGS,
                f"{EMBEDDINGS}.dropout")  # fmt: skip
    bare = "embeddings.word_embeddings"  # the padded states must be part of the output
    yield _code("zeros for padding", override(bare, forward=paddle.nn.Embedding.forward), bare,
                model="BertModel")  # fmt: skip
    yield _code("pad row learns", override(bare, forward=_pad_row_learns), bare,
                f"{bare}.weight", stages=BACKWARD, model="BertModel",
                torch_loss=_all_states, paddle_loss=_all_states)  # fmt: skip


def _all_states(output: Any) -> Any:
    return (output[0] ** 4).mean()


def _head_cases() -> Iterator[Case]:
    yield _code("last token pooled", override(POOLER, forward=_last_token), POOLER)
    yield _code("mean pooled", override(POOLER, forward=_mean_token), POOLER)
    yield _code("no tanh", override(POOLER, forward=_without_tanh), POOLER, f"{POOLER}.activation")
    wide = tuple(f"{layer}.intermediate" for layer in LAYERS)
    yield _code("half precision inside", override(*wide, forward=_in_half), *wide)
    yield _code("pooler by-passed", override("", forward=_first_token_unpooled), "", POOLER)
    yield _code("mask left behind", override("", forward=_mask_left_behind), "")
    yield _code("token types left behind", override("", forward=_types_left_behind), "")
    yield _code("token types for the mask", override("", forward=_types_as_mask), "")
    yield _code("no dropout before the classifier", override("", forward=_undropped), "", "dropout")
    yield _code("dropout twice", override("", forward=_dropped_twice), "", "dropout")
    yield _code("probabilities for logits", override("", forward=_probabilities), "")
    yield _code("encoder without gradient", override("", forward=_pooled_detached), "", "bert",
                stages=BACKWARD)  # fmt: skip
    yield _code("pooler frozen", frozen(POOLER), *_names((POOLER, f"{POOLER}.dense"), *WB),
                f"{POOLER}.dense", stages=())  # fmt: skip
    yield _code("classifier without bias", _unused_bias, "classifier", "classifier.bias", stages=())
    head, table = "cls.predictions", f"{EMBEDDINGS}.word_embeddings"
    decoder = f"{head}.decoder"
    yield _code("norm before activation", override(f"{head}.transform", forward=_norm_before_activation),
                f"{head}.transform", model=WORDS)  # fmt: skip
    yield _code("no norm in the head", override(f"{head}.transform", forward=_without_norm),
                f"{head}.transform", f"{head}.transform.LayerNorm", model=WORDS)  # fmt: skip
    yield _code(
        "no decoder bias", override(decoder, forward=_without_decoder_bias), decoder, model=WORDS
    )
    tied = (decoder, f"{decoder}.weight", f"{table}.weight", table)
    yield _code("untied", _untied, *tied, stages=(), model=WORDS)
    yield _code("tied table detached", override(decoder, forward=_detached_table), *tied,
                stages=BACKWARD, model=WORDS)  # fmt: skip


def _training(**given: Any) -> Twins:
    """Build the pair with AdamW and a linear warm-up and decay on both sides; `given` replaces."""
    options = {
        "torch_optimizer": lambda model: torch.optim.AdamW(
            model.parameters(), 1e-3, eps=1e-6, weight_decay=0.01
        ),
        "paddle_optimizer": _adamw,
        "torch_scheduler": lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, _warm_up),
        "paddle_scheduler": lambda optimizer: optimizer._learning_rate,
        "steps": 4,
    }
    return bert(**options | given)


def _warm_up(step: int) -> float:
    return min((step + 1) / 2, (6 - step) / 4)


def _adamw(model: Any, factor: Callable[[int], float] = _warm_up, **given: Any) -> Any:
    rate = paddle.optimizer.lr.LambdaDecay(1e-3, factor)
    options = {"epsilon": 1e-6, "weight_decay": 0.01, "learning_rate": rate} | given
    return paddle.optimizer.AdamW(parameters=model.parameters(), **options)


def _no_decay(name: str) -> bool:
    return "b_0" not in name and "w_0" in name


ANYWHERE = frozenset(["", *dict(pt_bert.BertForSequenceClassification(CONFIG).named_parameters())])


def _training_cases() -> Iterator[Case]:
    for name, stage, given in (
        ("Adam's own epsilon", "optimizer", {"epsilon": 1e-8}),
        ("no decay of biases", "optimizer", {"apply_decay_param_fun": _no_decay}),
        ("beta2 0.98", "optimizer", {"beta2": 0.98}),
        ("gradients clipped", "optimizer", {"grad_clip": paddle.nn.ClipGradByGlobalNorm(0.1)}),
        ("warm-up starts a step late", "schedule", {
            "factor": lambda step: min(step / 2, (6 - step) / 4)}),
        ("decay a step short", "schedule", {"factor": lambda step: min((step + 1) / 2, (5 - step) / 4)}),
    ):  # fmt: skip
        stages = ("schedule", "optimizer") if stage == "schedule" else (stage,)
        build = partial(_training, paddle_optimizer=partial(_adamw, **given))
        yield Case(name, build, ANYWHERE, frozenset(stages))
    for name, given in (
        ("summed loss", {"reduction": "sum"}),
        ("smoothed labels", {"label_smoothing": 0.1}),
    ):
        build = partial(bert, paddle_loss=partial(_paddle_entropy, **given))
        yield case(name, build, "", stages=LOSS)
    yield case("weighted loss", partial(bert, paddle_loss=_weighted_entropy), "", stages=LOSS)


NLP = (
    (r"embeddings\.layer_norm\.(\w+)", (r"embeddings.LayerNorm.\1",)),
    *(
        (rf"encoder\.layers\.(\d+)\.{ours}\.(\w+)", (rf"encoder.layer.\1.{theirs}.\2",))
        for ours, theirs in (
            ("self_attn.q_proj", "attention.self.query"),
            ("self_attn.k_proj", "attention.self.key"),
            ("self_attn.v_proj", "attention.self.value"),
            ("self_attn.out_proj", "attention.output.dense"),
            ("norm1", "attention.output.LayerNorm"),
            ("linear1", "intermediate.dense"),
            ("linear2", "output.dense"),
            ("norm2", "output.LayerNorm"),
        )
    ),
)
COMMON = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
          "intermediate_size", "max_position_embeddings", "type_vocab_size")  # fmt: skip


def hugging_face(
    config: BertConfig = CONFIG, pad: int | None = 0, attention: str = "sdpa", **given: Any
) -> Twins:
    """Build Hugging Face's BertModel and the project's port of it."""
    torch_model = _hugging_face(config, pad, attention)
    return twins(torch_model, pd_bert.BertModel(config), batch(), **LOSSES | given)


def paddlenlp(eps: float = 1e-12, pad: int | None = None, **given: Any) -> Twins:
    """Build Hugging Face's BertModel and PaddleNLP's: always epsilon 1e-12, and a pad row that learns."""
    torch_model = _hugging_face(replace(CONFIG, layer_norm_eps=eps), pad, "eager")
    from paddlenlp.transformers import BertConfig as PaddleConfig
    from paddlenlp.transformers import BertModel

    paddle_model = BertModel(PaddleConfig(**{name: getattr(CONFIG, name) for name in COMMON}))
    losses = {"torch_loss": _all_states, "paddle_loss": _all_states}
    return twins(torch_model, paddle_model, batch(), paddle_rules=NLP, **losses | given)


def _hugging_face(config: BertConfig, pad: int | None, attention: str) -> torch.nn.Module:
    from transformers import BertConfig as TorchConfig
    from transformers import BertModel

    seed()
    given = config.to_dict() | {"pad_token_id": pad, "attn_implementation": attention}
    return BertModel(TorchConfig(**given))


def _with_positions(**given: Any) -> Twins:
    pair = bert("BertModel", **given)
    positions = np.array([[0, 1, 2, 3, 4, 5, 6], [3, 4, 5, 6, 7, 8, 9], [6, 5, 4, 3, 2, 1, 0]])
    return replace(pair, inputs=dict(pair.inputs) | {"position_ids": positions})


def _positional() -> Twins:
    return replace(bert(), inputs=(batch()["input_ids"],))


def _float_mask() -> Twins:
    pair = bert()
    mask = batch()["attention_mask"].astype("float32")
    return replace(pair, inputs=dict(pair.inputs) | {"attention_mask": mask})


def _without_pooler() -> Twins:
    seed()
    models = pt_bert.BertModel(CONFIG, False), pd_bert.BertModel(CONFIG, False)
    return twins(*models, batch(), **LOSSES)


def _pooler_left_out() -> Twins:
    """Leave out of the port the pooler that the torch model has and no output shows."""
    seed()
    torch_model, paddle_model = pt_bert.BertForMaskedLM(CONFIG), pd_bert.BertForMaskedLM(CONFIG)
    torch_model.bert.unused = pt_bert.BertPooler(CONFIG)
    return twins(torch_model, paddle_model, batch(), **LOSSES)


def _words_loss(output: Any, mean: bool = False) -> Any:
    """Return the entropy of every second word. Paddle's own mean counts the words it ignores."""
    functional, tensor = (
        (TF, torch.tensor) if isinstance(output, torch.Tensor) else (PF, paddle.to_tensor)
    )
    labels = batch()["input_ids"]
    labels[:, ::2] = -100
    logits, flat = output.reshape([-1, 30]), tensor(labels.reshape([-1]))
    if mean:
        return functional.cross_entropy(logits, flat)
    return functional.cross_entropy(logits, flat, reduction="sum") / (labels >= 0).sum().item()


def _every_word(output: Any) -> Any:
    labels = paddle.to_tensor(batch()["input_ids"].reshape([-1]))
    return PF.cross_entropy(output.reshape([-1, 30]), labels)


def _other_cases() -> Iterator[Case]:
    """Yield faults that want another input, or another library's model."""
    positions = override("embeddings", forward=_embed)
    yield case("position ids not used", partial(_with_positions, change=positions),
               "embeddings", stages=FORWARD)  # fmt: skip
    words = {"model": WORDS, "torch_loss": partial(_words_loss, mean=True)}
    for name, loss in (
        ("words of -100 not ignored", _every_word),
        ("mean over ignored words too", partial(_words_loss, mean=True)),
    ):
        yield case(name, partial(bert, paddle_loss=loss, **words), "", stages=LOSS)
    norms = tuple(name.removeprefix("bert.") for name in NORMS)
    own = (
        "embeddings.layer_norm",
        *(f"encoder.layers.{n}.norm{m}" for n in (0, 1) for m in (1, 2)),
    )
    yield case("PaddleNLP's epsilon", partial(paddlenlp, eps=1e-5), *norms, *own, stages=FORWARD)
    table = "embeddings.word_embeddings"
    yield case("PaddleNLP's pad row learns", partial(paddlenlp, pad=0), table, f"{table}.weight",
               stages=("audit", "backward"))  # fmt: skip
    yield case("PaddleNLP's query untransposed", partial(
        paddlenlp, change_weights=weight(np.transpose, "encoder.layers.1.self_attn.q_proj.weight")),
        *below("encoder.layers.1.self_attn.q_proj", *WB),
        *below("encoder.layer.1.attention.self.query", *WB), stages=WEIGHTS)  # fmt: skip
    yield case("PaddleNLP's relu", partial(paddlenlp, change=_relu_inside),
               "encoder.layers.1", "encoder.layer.1.intermediate",
               "encoder.layer.1.intermediate.intermediate_act_fn", stages=FORWARD)  # fmt: skip


def _relu_inside(model: Any) -> None:
    model.encoder.layers[1].activation = PF.relu


FAITHFUL = [
    case("classifier", bert),
    case("classifier as first made", partial(bert, noise=0.0)),
    case("masked words, tied", partial(
        bert, WORDS, torch_loss=partial(_words_loss, mean=True), paddle_loss=_words_loss)),
    case("tuple of states and pooled", partial(bert, "BertModel")),
    case("no pooler: None in the output", _without_pooler),
    case("pooler that no output shows left out", _pooler_left_out),
    case("gelu by tanh on both sides", partial(bert, config=replace(CONFIG, hidden_act="gelu_new"))),
    case("position ids as input", _with_positions),
    case("ids alone, by position", _positional),
    case("mask of floats", _float_mask),
    case("forty-eight layers", partial(bert, config=replace(CONFIG, num_hidden_layers=48))),
    case("Hugging Face's BERT", hugging_face),
    case("Hugging Face's BERT, explicit attention", partial(hugging_face, attention="eager")),
    case("Hugging Face's BERT and PaddleNLP's", paddlenlp),
    case("trained with warm-up", _training),
]  # fmt: skip

CASES = [
    *FAITHFUL, *_weight_cases(), *_setting_cases(), *_attention_cases(), *_layer_cases(),
    *_embedding_cases(), *_head_cases(), *_training_cases(), *_other_cases(),
]  # fmt: skip
