"""What each framework draws by default, and whether equal arguments give equal distributions: measured.

FACTS was measured by drawing from both with eight seeds, under the pinned versions; `measured` is how,
and the tests do it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reprod_align.base.text import shorten
from reprod_align.initialisation import ParameterResult, compare_initialisation
from reprod_align.initialisation.sample import Samples

ALPHA = 1e-5  # of a case, since there are more than a hundred
_SHOWN = 3  # names of parameters that start alike; the others are counted


@dataclass(frozen=True)
class Fact:
    """One parameter of a case, or several that start alike."""

    case: str
    """"kaiming_normal_ on Embedding", "Linear by default" """
    parameters: str
    torch: str
    """what they start from in PyTorch, in words"""
    paddle: str
    same: bool
    remedy: str
    """what to set in Paddle; "" if nothing"""


def measured(case: str, torch: Samples, paddle: Samples) -> list[Fact]:
    """Return the facts of a case, given what both sides drew.

    Names begin "0.": a case is a Sequential of one layer. Raises as `compare_initialisation` does.
    """
    crossed = {name: name.replace("multihead_attn", "cross_attn") for name in torch}
    name_map = {name: other for name, other in crossed.items() if name != other}
    alike: dict[tuple[str, ...], list[ParameterResult]] = {}
    for result in compare_initialisation(torch, paddle, ALPHA, name_map).results:
        alike.setdefault((*result.words, result.remedy, _copied(result)), []).append(result)
    return [_fact(case, results) for results in alike.values()]


def as_text(facts: Sequence[Fact]) -> str:
    """Return a paragraph a case: what is called, then what each parameter starts from."""
    lines = []
    for case in dict.fromkeys(fact.case for fact in facts):
        lines.append("  ".join((case, *(f"[{call}]" for call in calls(case)))))
        for fact in (fact for fact in facts if fact.case == case):
            words = fact.torch if fact.same else f"PyTorch {fact.torch}; Paddle {fact.paddle}"
            lines.append(f"  {'same' if fact.same else 'DIFFERENT':9}  {fact.parameters}: {words}")
            lines += [] if fact.same else [f"             set {fact.remedy}"]
    return "\n".join(lines)


def calls(case: str) -> tuple[str, ...]:
    """Return what a case calls on each side, PyTorch's first; () for a layer's own initialisation."""
    return CALLS.get(case.partition(" on ")[0], ())


def initialiser_table(facts: Sequence[Fact], headings: Sequence[str]) -> str:
    """Return the initialisers as a Markdown table: both calls, layers where they agree and differ."""
    rows = []
    for name, both in CALLS.items():
        on = [fact for fact in facts if fact.case.partition(" on ")[0] == name]
        same = ", ".join(_layer(fact) for fact in on if fact.same)
        other = "; ".join(f"{_layer(f)}: {f.torch} / {f.paddle}" for f in on if not f.same)
        rows.append((*(f"`{call}`" for call in both), same, other))
    return _markdown(headings, rows)


def default_table(facts: Sequence[Fact], headings: Sequence[str]) -> str:
    """Return the layers' own initialisation as a Markdown table of five columns."""
    own = [fact for fact in facts if fact.case.endswith(" by default")]
    rows = [
        (
            f.case.removesuffix(" by default"),
            f.parameters,
            f.torch,
            f.paddle,
            "=" if f.same else "≠",
        )
        for f in own
    ]
    return _markdown(headings, rows)


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _layer(fact: Fact) -> str:
    return fact.case.partition(" on ")[2]


def _copied(result: ParameterResult) -> str:
    copied = [text for text in result.problems if text.startswith("starts as a copy")]
    return copied[0].rpartition(" in ")[2].removesuffix(" alone") if copied else ""


def _fact(case: str, results: Sequence[ParameterResult]) -> Fact:
    first, side = results[0], _copied(results[0])
    names = [result.paddle_name.partition(".")[2] for result in results]
    torch, paddle = first.words
    also = "; a copy of the first layer's"
    return Fact(
        case,
        shorten(names, _SHOWN),
        torch + also * (side == "PyTorch"),
        paddle + also * (side == "Paddle"),
        first.passed,
        first.remedy,
    )


def _read(line: str) -> Fact:
    """Read "case | parameters | PyTorch", then Paddle if its words differ, then what to set if it does."""
    case, parameters, torch, *rest = line.split(" | ")
    paddle, remedy = (*rest, *("", "")[len(rest) :])
    return Fact(case, parameters, torch, paddle or torch, len(rest) < 2, remedy)


CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "kaiming_normal_": ("kaiming_normal_(w)", "KaimingNormal()"),
    "kaiming_normal_ fan_out": (
        'kaiming_normal_(w, mode="fan_out")',
        'KaimingNormal(mode="fan_out")',
    ),
    "kaiming_normal_ tanh": (
        'kaiming_normal_(w, nonlinearity="tanh")',
        'KaimingNormal(nonlinearity="tanh")',
    ),
    "kaiming_normal_ selu": (
        'kaiming_normal_(w, nonlinearity="selu")',
        'KaimingNormal(nonlinearity="selu")',
    ),
    "kaiming_normal_ linear": (
        'kaiming_normal_(w, nonlinearity="linear")',
        'KaimingNormal(nonlinearity="linear")',
    ),
    "kaiming_uniform_": ("kaiming_uniform_(w)", "KaimingUniform()"),
    "kaiming_uniform_ fan_out": (
        'kaiming_uniform_(w, mode="fan_out")',
        'KaimingUniform(mode="fan_out")',
    ),
    "kaiming_uniform_ a": (
        "kaiming_uniform_(w, a=sqrt(5))",
        "KaimingUniform(negative_slope=sqrt(5))",
    ),
    "kaiming_uniform_ a leaky_relu": (
        'kaiming_uniform_(w, a=sqrt(5), nonlinearity="leaky_relu")',
        'KaimingUniform(negative_slope=sqrt(5), nonlinearity="leaky_relu")',
    ),
    "xavier_normal_": ("xavier_normal_(w)", "XavierNormal()"),
    "xavier_normal_ gain": ("xavier_normal_(w, gain=2.0)", "XavierNormal(gain=2.0)"),
    "xavier_uniform_": ("xavier_uniform_(w)", "XavierUniform()"),
    "xavier_uniform_ gain": ("xavier_uniform_(w, gain=2.0)", "XavierUniform(gain=2.0)"),
    "normal_": ("normal_(w)", "Normal()"),
    "normal_ 0.02": ("normal_(w, 0.0, 0.02)", "Normal(0.0, 0.02)"),
    "uniform_": ("uniform_(w)", "Uniform()"),
    "uniform_ 0.1": ("uniform_(w, -0.1, 0.1)", "Uniform(-0.1, 0.1)"),
    "constant_": ("constant_(w, 0.3)", "Constant(0.3)"),
    "ones_": ("ones_(w)", "Constant(1.0)"),
    "zeros_": ("zeros_(w)", "Constant()"),
    "trunc_normal_": ("trunc_normal_(w)", "TruncatedNormal()"),
    "trunc_normal_ 0.02": ("trunc_normal_(w, std=0.02)", "TruncatedNormal(std=0.02)"),
    "trunc_normal_ 0.02 cut": (
        "trunc_normal_(w, std=0.02, a=-0.04, b=0.04)",
        "TruncatedNormal(std=0.02, a=-0.04, b=0.04)",
    ),
    "orthogonal_": ("orthogonal_(w)", "Orthogonal()"),
    "orthogonal_ gain": ("orthogonal_(w, gain=2.0)", "Orthogonal(gain=2.0)"),
    "eye_": ("eye_(w)", "paddle.nn.init.eye_(w)"),
    "dirac_": ("dirac_(w)", "Dirac()"),
}

_MEASURED: Final = """\
Linear by default | weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
Linear by default | bias | uniform on +-0.102 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
Bilinear by default | weight | uniform on +-0.204 | uniform on +-0.0541 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.20412, 0.20412))
Conv1d by default | weight | uniform on +-0.118 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | normal, std 0.167 (Kaiming: sqrt(2/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.117851, 0.117851))
Conv1d by default | bias | uniform on +-0.118 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.117851, 0.117851))
Conv2d by default | weight | uniform on +-0.068 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | normal, std 0.0962 (Kaiming: sqrt(2/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0680414, 0.0680414))
Conv2d by default | bias | uniform on +-0.068 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0680414, 0.0680414))
Conv2d groups=4 by default | weight | uniform on +-0.136 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | normal, std 0.096 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.136083, 0.136083))
Conv2d groups=4 by default | bias | uniform on +-0.136 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.136083, 0.136083))
Conv3d by default | weight | uniform on +-0.0393 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | normal, std 0.0556 (Kaiming: sqrt(2/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0392837, 0.0392837))
Conv3d by default | bias | uniform on +-0.0393 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0392837, 0.0392837))
ConvTranspose1d by default | weight | uniform on +-0.0913 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0912871, 0.0912871))
ConvTranspose1d by default | bias | uniform on +-0.0913 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0912871, 0.0912871))
ConvTranspose2d by default | weight | uniform on +-0.0527 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.102 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0527046, 0.0527046))
ConvTranspose2d by default | bias | uniform on +-0.0527 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0527046, 0.0527046))
ConvTranspose3d by default | weight | uniform on +-0.0304 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.0589 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.030429, 0.030429))
ConvTranspose3d by default | bias | uniform on +-0.0304 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.030429, 0.030429))
Embedding by default | weight | normal, std 1 | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 1))
Embedding padding_idx=3 by default | weight | zeros in row 3, elsewhere normal, std 1 | zeros in row 3, elsewhere uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 1)), then zeros in row 3
LayerNorm by default | weight | ones
LayerNorm by default | bias | zeros
BatchNorm1d by default | weight | ones
BatchNorm1d by default | bias | zeros
BatchNorm2d by default | weight | ones
BatchNorm2d by default | bias | zeros
BatchNorm3d by default | weight | ones
BatchNorm3d by default | bias | zeros
GroupNorm by default | weight | ones
GroupNorm by default | bias | zeros
InstanceNorm2d affine by default | scale | ones
InstanceNorm2d affine by default | bias | zeros
PReLU by default | _weight | all 0.25
LSTM by default | weight_ih_l0, bias_ih_l0, bias_hh_l0 | uniform on +-0.125
LSTM by default | weight_hh_l0 | uniform on +-0.125 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
GRU by default | weight_ih_l0, bias_ih_l0, bias_hh_l0 | uniform on +-0.125
GRU by default | weight_hh_l0 | uniform on +-0.125 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
RNN by default | weight_ih_l0 | uniform on +-0.125 (1/sqrt(fan_out))
RNN by default | weight_hh_l0 | uniform on +-0.125 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
RNN by default | bias_ih_l0, bias_hh_l0 | uniform on +-0.125
LSTMCell by default | weight_ih, bias_ih, bias_hh | uniform on +-0.125
LSTMCell by default | weight_hh | uniform on +-0.125 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
MultiheadAttention by default | q_proj.weight, k_proj.weight, v_proj.weight | uniform on +-0.125 | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.125, 0.125))
MultiheadAttention by default | q_proj.bias, k_proj.bias, v_proj.bias and 1 more | zeros
MultiheadAttention by default | out_proj.weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.0.self_attn.q_proj.weight, layers.0.self_attn.k_proj.weight, layers.0.self_attn.v_proj.weight | uniform on +-0.125 | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.125, 0.125))
TransformerEncoder by default | layers.0.self_attn.q_proj.bias, layers.0.self_attn.k_proj.bias, layers.0.self_attn.v_proj.bias and 9 more | zeros
TransformerEncoder by default | layers.0.self_attn.out_proj.weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.0.linear1.weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.0.linear1.bias | uniform on +-0.102 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.0.linear2.weight | uniform on +-0.0791 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0790569, 0.0790569))
TransformerEncoder by default | layers.0.linear2.bias | uniform on +-0.0791 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0790569, 0.0790569))
TransformerEncoder by default | layers.0.norm1.weight, layers.0.norm2.weight, layers.1.norm1.weight and 1 more | ones
TransformerEncoder by default | layers.1.self_attn.q_proj.weight, layers.1.self_attn.k_proj.weight, layers.1.self_attn.v_proj.weight | uniform on +-0.125; a copy of the first layer's | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.125, 0.125))
TransformerEncoder by default | layers.1.self_attn.out_proj.weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)); a copy of the first layer's | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.1.linear1.weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)); a copy of the first layer's | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.1.linear1.bias | uniform on +-0.102 (1/sqrt(fan_in) of its weight); a copy of the first layer's | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
TransformerEncoder by default | layers.1.linear2.weight | uniform on +-0.0791 (Kaiming a=sqrt(5): 1/sqrt(fan_in)); a copy of the first layer's | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0790569, 0.0790569))
TransformerEncoder by default | layers.1.linear2.bias | uniform on +-0.0791 (1/sqrt(fan_in) of its weight); a copy of the first layer's | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0790569, 0.0790569))
Transformer by default | encoder.layers.0.self_attn.q_proj.weight, encoder.layers.0.self_attn.k_proj.weight, encoder.layers.0.self_attn.v_proj.weight and 6 more | uniform on +-0.125 | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out))) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.125, 0.125))
Transformer by default | encoder.layers.0.self_attn.q_proj.bias, encoder.layers.0.self_attn.k_proj.bias, encoder.layers.0.self_attn.v_proj.bias and 16 more | zeros
Transformer by default | encoder.layers.0.self_attn.out_proj.weight, decoder.layers.0.self_attn.out_proj.weight, decoder.layers.0.cross_attn.out_proj.weight | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out)))
Transformer by default | encoder.layers.0.linear1.weight, encoder.layers.0.linear2.weight, decoder.layers.0.linear1.weight and 1 more | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out)))
Transformer by default | encoder.layers.0.linear1.bias, decoder.layers.0.linear1.bias | uniform on +-0.102 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
Transformer by default | encoder.layers.0.linear2.bias, decoder.layers.0.linear2.bias | uniform on +-0.0791 (1/sqrt(fan_in) of its weight) | zeros | bias_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0790569, 0.0790569))
Transformer by default | encoder.layers.0.norm1.weight, encoder.layers.0.norm2.weight, encoder.norm.weight and 4 more | ones
kaiming_normal_ on Linear | weight | normal, std 0.144 (Kaiming: sqrt(2/fan_in))
kaiming_normal_ on Conv2d | weight | normal, std 0.0962 (Kaiming: sqrt(2/fan_in))
kaiming_normal_ on ConvTranspose2d | weight | normal, std 0.0745 (Kaiming: sqrt(2/fan_in))
kaiming_normal_ on Embedding | weight | normal, std 0.167 (Kaiming: sqrt(2/fan_in)) | normal, std 0.129 (Kaiming fan_out: sqrt(2/fan_out)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.166667))
kaiming_normal_ fan_out on Linear | weight | normal, std 0.112 (Kaiming fan_out: sqrt(2/fan_out))
kaiming_normal_ fan_out on Conv2d | weight | normal, std 0.0745 (Kaiming fan_out: sqrt(2/fan_out))
kaiming_normal_ fan_out on ConvTranspose2d | weight | normal, std 0.0962 (Kaiming fan_out: sqrt(2/fan_out))
kaiming_normal_ fan_out on Embedding | weight | normal, std 0.129 (Kaiming fan_out: sqrt(2/fan_out)) | normal, std 0.167 (Kaiming: sqrt(2/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.129099))
kaiming_normal_ tanh on Linear | weight | normal, std 0.17
kaiming_normal_ tanh on Conv2d | weight | normal, std 0.114
kaiming_normal_ tanh on ConvTranspose2d | weight | normal, std 0.0879
kaiming_normal_ tanh on Embedding | weight | normal, std 0.197 | normal, std 0.152 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.197))
kaiming_normal_ selu on Linear | weight | normal, std 0.0767 | normal, std 0.0766
kaiming_normal_ selu on Conv2d | weight | normal, std 0.0511 | normal, std 0.0512
kaiming_normal_ selu on ConvTranspose2d | weight | normal, std 0.0396 | normal, std 0.0395
kaiming_normal_ selu on Embedding | weight | normal, std 0.0885 | normal, std 0.0685 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.0885))
kaiming_normal_ linear on Linear | weight | normal, std 0.102 (1/sqrt(fan_in))
kaiming_normal_ linear on Conv2d | weight | normal, std 0.068 (1/sqrt(fan_in))
kaiming_normal_ linear on ConvTranspose2d | weight | normal, std 0.0527 (1/sqrt(fan_in))
kaiming_normal_ linear on Embedding | weight | normal, std 0.118 (1/sqrt(fan_in)) | normal, std 0.0913 (1/sqrt(fan_out)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0, 0.117851))
kaiming_uniform_ on Linear | weight | uniform on +-0.25 (Kaiming: sqrt(6/fan_in))
kaiming_uniform_ on Conv2d | weight | uniform on +-0.167 (Kaiming: sqrt(6/fan_in))
kaiming_uniform_ on ConvTranspose2d | weight | uniform on +-0.129 (Kaiming: sqrt(6/fan_in))
kaiming_uniform_ on Embedding | weight | uniform on +-0.289 (Kaiming: sqrt(6/fan_in)) | uniform on +-0.224 (Kaiming fan_out: sqrt(6/fan_out)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.288675, 0.288675))
kaiming_uniform_ fan_out on Linear | weight | uniform on +-0.194 (Kaiming fan_out: sqrt(6/fan_out))
kaiming_uniform_ fan_out on Conv2d | weight | uniform on +-0.129 (Kaiming fan_out: sqrt(6/fan_out))
kaiming_uniform_ fan_out on ConvTranspose2d | weight | uniform on +-0.167 (Kaiming fan_out: sqrt(6/fan_out))
kaiming_uniform_ fan_out on Embedding | weight | uniform on +-0.224 (Kaiming fan_out: sqrt(6/fan_out)) | uniform on +-0.289 (Kaiming: sqrt(6/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.223607, 0.223607))
kaiming_uniform_ a on Linear | weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.25 (Kaiming: sqrt(6/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.102062, 0.102062))
kaiming_uniform_ a on Conv2d | weight | uniform on +-0.068 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.167 (Kaiming: sqrt(6/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0680414, 0.0680414))
kaiming_uniform_ a on ConvTranspose2d | weight | uniform on +-0.0527 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.129 (Kaiming: sqrt(6/fan_in)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.0527046, 0.0527046))
kaiming_uniform_ a on Embedding | weight | uniform on +-0.118 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.224 (Kaiming fan_out: sqrt(6/fan_out)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.117851, 0.117851))
kaiming_uniform_ a leaky_relu on Linear | weight | uniform on +-0.102 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
kaiming_uniform_ a leaky_relu on Conv2d | weight | uniform on +-0.068 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
kaiming_uniform_ a leaky_relu on ConvTranspose2d | weight | uniform on +-0.0527 (Kaiming a=sqrt(5): 1/sqrt(fan_in))
kaiming_uniform_ a leaky_relu on Embedding | weight | uniform on +-0.118 (Kaiming a=sqrt(5): 1/sqrt(fan_in)) | uniform on +-0.0913 (1/sqrt(fan_out)) | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(-0.117851, 0.117851))
xavier_normal_ on Linear | weight | normal, std 0.0884 (Xavier: sqrt(2/(fan_in+fan_out)))
xavier_normal_ on Conv2d | weight | normal, std 0.0589 (Xavier: sqrt(2/(fan_in+fan_out)))
xavier_normal_ on ConvTranspose2d | weight | normal, std 0.0589 (Xavier: sqrt(2/(fan_in+fan_out)))
xavier_normal_ on Embedding | weight | normal, std 0.102 (Xavier: sqrt(2/(fan_in+fan_out)))
xavier_normal_ gain on Linear | weight | normal, std 0.177
xavier_normal_ gain on Conv2d | weight | normal, std 0.118
xavier_normal_ gain on ConvTranspose2d | weight | normal, std 0.118
xavier_normal_ gain on Embedding | weight | normal, std 0.204
xavier_uniform_ on Linear | weight | uniform on +-0.153 (Xavier: sqrt(6/(fan_in+fan_out)))
xavier_uniform_ on Conv2d | weight | uniform on +-0.102 (Xavier: sqrt(6/(fan_in+fan_out)))
xavier_uniform_ on ConvTranspose2d | weight | uniform on +-0.102 (Xavier: sqrt(6/(fan_in+fan_out)))
xavier_uniform_ on Embedding | weight | uniform on +-0.177 (Xavier: sqrt(6/(fan_in+fan_out)))
xavier_uniform_ gain on Linear | weight | uniform on +-0.306
xavier_uniform_ gain on Conv2d | weight | uniform on +-0.204
xavier_uniform_ gain on ConvTranspose2d | weight | uniform on +-0.204
xavier_uniform_ gain on Embedding | weight | uniform on +-0.354
normal_ on Linear | weight | normal, std 1
normal_ on Conv2d | weight | normal, std 1
normal_ on ConvTranspose2d | weight | normal, std 1
normal_ on Embedding | weight | normal, std 1
normal_ 0.02 on Linear | weight | normal, std 0.02
normal_ 0.02 on Conv2d | weight | normal, std 0.02
normal_ 0.02 on ConvTranspose2d | weight | normal, std 0.02
normal_ 0.02 on Embedding | weight | normal, std 0.02
uniform_ on Linear | weight | uniform from 0 to 1 | uniform on +-1 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(0, 1))
uniform_ on Conv2d | weight | uniform from 0 to 1 | uniform on +-1 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(0, 1))
uniform_ on ConvTranspose2d | weight | uniform from 0 to 1 | uniform on +-1 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(0, 1))
uniform_ on Embedding | weight | uniform from 0 to 1 | uniform on +-1 | weight_attr=paddle.ParamAttr(initializer=nn.initializer.Uniform(0, 1))
uniform_ 0.1 on Linear | weight | uniform on +-0.1
uniform_ 0.1 on Conv2d | weight | uniform on +-0.1
uniform_ 0.1 on ConvTranspose2d | weight | uniform on +-0.1
uniform_ 0.1 on Embedding | weight | uniform on +-0.1
constant_ on Linear | weight | all 0.3
constant_ on Conv2d | weight | all 0.3
constant_ on ConvTranspose2d | weight | all 0.3
constant_ on Embedding | weight | all 0.3
ones_ on Linear | weight | ones
ones_ on Conv2d | weight | ones
ones_ on ConvTranspose2d | weight | ones
ones_ on Embedding | weight | ones
zeros_ on Linear | weight | zeros
zeros_ on Conv2d | weight | zeros
zeros_ on ConvTranspose2d | weight | zeros
zeros_ on Embedding | weight | zeros
trunc_normal_ on Linear | weight | truncated normal, std 1, cut at 2 std
trunc_normal_ on Conv2d | weight | truncated normal, std 1, cut at 2 std
trunc_normal_ on ConvTranspose2d | weight | truncated normal, std 1, cut at 2 std
trunc_normal_ on Embedding | weight | truncated normal, std 1, cut at 2 std
trunc_normal_ 0.02 on Linear | weight | normal, std 0.02
trunc_normal_ 0.02 on Conv2d | weight | normal, std 0.02
trunc_normal_ 0.02 on ConvTranspose2d | weight | normal, std 0.02
trunc_normal_ 0.02 on Embedding | weight | normal, std 0.02
trunc_normal_ 0.02 cut on Linear | weight | truncated normal, std 0.02, cut at 2 std
trunc_normal_ 0.02 cut on Conv2d | weight | truncated normal, std 0.02, cut at 2 std
trunc_normal_ 0.02 cut on ConvTranspose2d | weight | truncated normal, std 0.02, cut at 2 std
trunc_normal_ 0.02 cut on Embedding | weight | truncated normal, std 0.02, cut at 2 std
orthogonal_ on Linear | weight | orthogonal, gain 1
orthogonal_ on Conv2d | weight | orthogonal, gain 1
orthogonal_ on ConvTranspose2d | weight | orthogonal, gain 1
orthogonal_ on Embedding | weight | orthogonal, gain 1
orthogonal_ gain on Linear | weight | orthogonal, gain 2
orthogonal_ gain on Conv2d | weight | orthogonal, gain 2
orthogonal_ gain on ConvTranspose2d | weight | orthogonal, gain 2
orthogonal_ gain on Embedding | weight | orthogonal, gain 2
eye_ on Linear | weight | fixed zeros and ones
dirac_ on Conv2d | weight | fixed zeros and ones
"""  # noqa: E501

FACTS: Final[tuple[Fact, ...]] = tuple(_read(line) for line in _MEASURED.splitlines())
"""Every case that was measured, in the order of the backends' cases."""
