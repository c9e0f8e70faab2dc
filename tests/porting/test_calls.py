"""Calls recorded where they stand, tried on Paddle, and written."""

import ast

from reprod_align.api.calls import LAYERS, ApiRow, parse_rows
from reprod_align.explain.code import Code, dotted
from reprod_align.porting.calls import (
    adapters,
    candidates,
    draft,
    names,
    record,
    rows,
    slots,
    values,
)
from reprod_align.porting.port import list_missing
from reprod_align.porting.source import Source
from tests.porting.conftest import PortSource, WriteSource

import numpy as np
import paddle
import pytest
import torch

TEXT = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self, norm=nn.BatchNorm1d):
        super().__init__()
        self.cell = nn.LSTMCell(4, 4, 1)
        self.norm = norm(4, eps=1e-3)

    def forward(self, x, n):
        h, c = self.cell(x)
        h = F.dropout(self.norm(h), 0.5, self.training)
        best = h.max(1)[0]
        return torch.cat([h * n, c], 1), best.mul_(2.0)

    def save(self, path):
        torch.save(self.state_dict(), path)
        return torch.no_such_thing(self)
"""
INPUTS = (np.random.default_rng(0).standard_normal((3, 4)), np.array([[1], [2], [3]]))


@pytest.fixture
def source(write_source: WriteSource) -> Source:
    return write_source(TEXT)


UNTRIED = """
import torch
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)

    def convolve(self, x, weight):
        return F.conv1d(x, weight, stride=2, padding=0)
"""


def test_a_convolution_that_was_not_tried_keeps_its_padding(write_source: WriteSource) -> None:
    made = draft.write_draft(write_source(UNTRIED), INPUTS[:1], UNTRIED)
    assert "conv1d(x, weight, stride=2, padding=0)" in made.text


def test_each_call_is_written_as_what_gives_the_recorded_result(source: Source) -> None:
    made = draft.write_draft(source, INPUTS, TEXT)
    assert "dropout(self.norm(h), p=0.5, training=self.training)" in made.text
    assert "paddle.compat.max(h, dim=1)[0]" in made.text or "h.max(1)[0]" not in made.text
    assert "n.astype(h.dtype)" in made.text and "class LSTMCell" in made.text
    assert "class BatchNorm1d(paddle.nn.BatchNorm1D)" in made.text
    assert made.proven >= 5 and made.failure == ""
    assert [one.partition(": ")[2] for one in made.left] == ["torch.no_such_thing"]
    assert any("torch.save" in one for one in made.unseen)
    compile(made.text, "port", "exec")


def test_a_candidate_that_gives_another_result_is_refused(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = ApiRow("torch.cat", ("tensors", "dim"), {}, "paddle.concat(tensors[::-1], axis=dim)")
    table = dict(rows.read_rows())
    monkeypatch.setattr(
        candidates, "read_rows", lambda: {**table, "torch.cat": (wrong, *table["torch.cat"])}
    )
    made = draft.write_draft(source, INPUTS, TEXT)
    assert "[::-1]" not in made.text and "paddle.concat(" in made.text


def test_the_error_of_the_recording_is_kept(source: Source) -> None:
    made = draft.write_draft(source, INPUTS, TEXT.replace("h.max(1)", "h.maximum_of(1)"))
    assert "maximum_of" in made.failure


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("torch.nn.BatchNorm2d", {"num_features": "8", "momentum": "0.1"}, "momentum=0.9"),
        (
            "torch.nn.Linear",
            {"in_features": "2", "out_features": "3", "bias": "False"},
            "bias_attr=False",
        ),
        ("torch.nn.InstanceNorm2d", {"num_features": "8"}, "weight_attr=False"),
        (
            "torch.nn.Conv2d",
            {
                "in_channels": "stride",
                "out_channels": "3",
                "kernel_size": "2",
                "padding": "(padding, 0)",
            },
            "(stride, 3, 2, padding=(padding, 0))",
        ),
        ("torch.cat", {"tensors": "[a]"}, "paddle.concat([a])"),
        ("torch.meshgrid", {"tensors": "a, *b, ", "indexing": "'ij'"}, "paddle.meshgrid(a, *b)"),
        (
            "torch.nn.LSTM",
            {"input_size": "2", "hidden_size": "3", "batch_first": "True"},
            "time_major=False",
        ),
    ],
)
def test_a_row_is_filled_with_the_arguments(name: str, given: dict[str, str], text: str) -> None:
    made = slots.fill(rows.read_rows()[name][0], given)
    assert made is not None and text in made


def test_an_element_of_a_list_is_read_where_it_is_written_out() -> None:
    joined = [row for row in rows.read_rows()["torch.cat"] if "tensors[1].dtype" in row.target]
    texts = {
        given: slots.fill(joined[0], {"tensors": given}) for given in ("[a, b]", "[a]", "[*a, b]")
    }
    assert texts["[a, b]"] == "paddle.concat([one.astype(b.dtype) for one in [a, b]])"
    assert texts["[a]"] and "[a][1].dtype" in texts["[a]"]  # it is tried, and raises
    assert texts["[*a, b]"] and "[*a, b][1].dtype" in texts["[*a, b]"]


def test_every_layer_of_the_table_is_in_paddle() -> None:
    for name in {row.name for row in parse_rows(LAYERS)}:
        assert names.find_object(name) is not None, name
        target = rows.read_rows()[name][0].target.partition("(")[0]
        assert names.find_object(target) is not None, target


def test_every_name_in_the_table_is_in_paddle() -> None:
    for name, found in rows.read_rows().items():
        for row in found:
            for node in ast.walk(ast.parse(row.target)):
                words = dotted(node) if isinstance(node, ast.Attribute) else ""
                if words.startswith("paddle."):
                    assert names.find_object(words) is not None, (name, words)


def test_a_function_s_row_is_its_method_s_and_has_every_name_of_the_function() -> None:
    table = rows.read_rows()
    assert table["Tensor.roll"][0].target == "self.roll(shifts, axis=dims)"
    assert table["torch.conv_transpose2d"][0].name == "torch.nn.functional.conv_transpose2d"
    assert any(row.target == "input.astype(other.dtype)" for row in table["torch.type_as"])


LAYER = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4, 0.01, 0.3)
        self.act = torch.nn.LeakyReLU(0.2, True)

    def forward(self, x, n):
        x = self.norm(x)
        return x + self.act(x) * n
"""


def test_a_layer_is_proven_by_what_it_gave(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    (row, *others) = rows.read_rows()["torch.nn.BatchNorm1d"]
    for wrong in ("epsilon=eps, momentum=momentum", "epsilon=2 * eps, momentum=1 - momentum"):
        text = row.target.replace("epsilon=eps, momentum=1 - momentum", wrong)
        first = ApiRow(row.name, row.arguments, row.defaults, text)
        table = {**rows.read_rows(), row.name: (first, row, *others)}
        monkeypatch.setattr(candidates, "read_rows", lambda table=table: table)
        made = draft.write_draft(source, INPUTS, LAYER)
        assert "paddle.nn.BatchNorm1D(4, epsilon=0.01, momentum=0.7)" in made.text


def test_a_layer_whose_changed_input_is_read_changes_it_in_paddle_too(source: Source) -> None:
    made = draft.write_draft(source, INPUTS, LAYER)
    assert "InplaceLeakyReLU(0.2)" in made.text
    unread = LAYER.replace("return x + self.act(x) * n", "return self.act(x) * n")
    assert "paddle.nn.LeakyReLU(0.2)" in draft.write_draft(source, INPUTS, unread).text


def test_an_adapter_takes_the_arguments_of_pytorch() -> None:
    text = adapters.write_adapter(
        "torch.nn.MaxPool2d", "MaxPool2d", rows.read_rows()["torch.nn.MaxPool2d"], {}
    )
    space: dict[str, object] = {"paddle": paddle}
    exec(text, space)
    made = space["MaxPool2d"](2, 2, 0, 1, False, True)  # type: ignore[operator]
    assert list(made(paddle.ones([1, 1, 5, 5])).shape) == [1, 1, 3, 3]


def test_a_class_that_has_no_init_of_its_own() -> None:
    name = "torch.autograd.Variable"
    assert adapters.write_adapter(name, "Variable", rows.read_rows()[name], {}) == ""


def test_a_name_that_a_function_binds_is_its_own() -> None:
    tree = ast.parse(
        "from torch import relu\ndef f(relu):\n    return relu\ndef g():\n    return relu\n"
    )
    scope = names.Scope(tree)
    read = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert sorted(scope.name(node) for node in read) == ["", "torch.relu"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_agreement_is_of_shape_dtype_and_values(dtype: str) -> None:
    recorded = torch.arange(4).to(getattr(torch, dtype))
    assert values.agrees(values.to_paddle(recorded), recorded)
    assert not values.agrees(values.to_paddle(recorded + 1), recorded)
    assert values.agrees(values.to_paddle(recorded + 1), recorded, random=True)
    assert not values.agrees(values.to_paddle(recorded).astype("int32"), recorded)
    assert not values.agrees(values.to_paddle(recorded).reshape([2, 2]), recorded)


def test_numbers_stay_with_their_nodes() -> None:
    code = Code("x = f(1)\n")
    numbered = record.number_nodes(code.tree)
    assert numbered[code.tree.body[0]._site] is code.tree.body[0]  # type: ignore[attr-defined]


def test_names_that_do_not_exist_are_listed() -> None:
    code = Code("import paddle\na = paddle.optim.AdamW\nb = paddle.nn.Layer\n")
    assert list_missing(code) == ["line 2: paddle.optim does not exist"]


JOINED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3, **{"bias": True})
        self.other = nn.Linear(4, 3)
        self.other.weight = self.layer.weight
        self.third, self.corners = nn.Linear(4, 3), None
        self.held = nn.ParameterList([self.third.weight])
        self.norm = nn.BatchNorm1d(3)
        self.conv = nn.Conv1d(3, 3, 2)
        self.conv.stride, self.conv.dilation = (2,), (1,)
        self.conv.padding = (1,)

    def forward(self, x, n):
        kept = n.ne(2).int()
        sized = nn.functional.interpolate(x[None, None], size=(3, 4), align_corners=self.corners)
        x = x + sized[0, 0].movedim(1, 0).movedim(0, 1)
        rate = self.norm.momentum if self.norm.track_running_stats else 0.0
        y = nn.functional.linear(x, self.layer.weight) + self.other(x) + self.third(x)
        for grid in torch.meshgrid(y[0], y[1], y[2], indexing="ij"):
            y = y + grid.sum() * rate
        if isinstance(y, torch.sparse.Tensor if False else torch.fx.Proxy):
            y = y.node
        return self.norm(torch.cat([torch.tensor([]), y], 0) * kept)
"""


def test_layouts_settings_and_joined_expressions(write_source: WriteSource) -> None:
    made = draft.write_draft(write_source(JOINED), INPUTS, JOINED)
    assert made.failure == "" and made.unproven == ()
    assert "(n != 2).int()" in made.text or "paddle.not_equal" in made.text
    assert "(1 - self.norm._momentum) if True else" in made.text
    assert "self.layer = paddle.nn.Linear(" in made.text or "Linear(4, 3, **" in made.text
    assert "self.other = paddle.compat.nn.Linear(4, 3)" in made.text
    assert "self.third, self.corners = paddle.compat.nn.Linear(4, 3)" in made.text
    assert "align_corners=bool(self.corners)" in made.text and "paddle.moveaxis(" in made.text
    assert "paddle.meshgrid(y[0], y[1], y[2])" in made.text
    assert "self.conv._stride, " in made.text
    assert "self.conv._padding = self.conv._updated_padding = (1,)" in made.text


SIZED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.conv = nn.Linear(4, 3), nn.Conv2d(1, 1, 3, stride=2, padding=1)

    def forward(self, x, n):
        conv, y = self.conv, self.layer(x)
        if conv.stride != (2, 2) or not isinstance(conv.dilation, tuple):
            raise ValueError
        length = (3 + conv.padding[0] + conv.padding[1] - conv.kernel_size[0]) // conv.stride[0] + 1
        y2 = nn.functional.conv2d(y[None, None], conv.weight, None, conv.stride, conv.padding)
        return y + y2.sum() * length
"""


def test_what_paddle_s_convolutions_keep_as_lists_is_compared_as_a_tuple(
    port_source: PortSource,
) -> None:
    result, text = port_source(SIZED, INPUTS)
    assert result.passed, result.left
    assert "tuple(conv._stride) != (2, 2) or not isinstance(tuple(conv._dilation), tuple)" in text
    assert "conv._updated_padding[0] + conv._updated_padding[1]" in text


REWRITTEN = """
import torch
from torch.nn.modules.utils import _pair
import torch.nn as nn
import torch.nn.functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=None)
        self.weight = nn.Parameter(torch.arange(4.0))
        self.both = nn.Linear(4, 8)

    def forward(self, x):
        a = torch.arctanh(x / 9.0)
        b = torch.einsum("bchw,bchw->bchw", [a, x])
        five = b.unsqueeze(1)
        c = F.scaled_dot_product_attention(five, five, five)
        if 7 in torch.arange(4):
            c = c * 3.0
        for weight in (self.weight, self.weight, self.weight, self.weight, None):
            c = F.rms_norm(c, (4,), weight, 1e-3)
        first, second = self.both(c).chunk(2, dim=-1)
        c = c + first * second
        kept = F.pad(x > 0, (1, 1), value=True)
        torch._assert_async((x < 9).all(), "large")
        torch._check(len(x) > 0, lambda: f"{len(x)} rows")
        assert not x.is_sparse and len(_pair(2)) == 2
        with torch.no_grad():
            self.weight.copy_(torch.arange(4.0))
        with torch.backends.cuda.sdp_kernel(enable_flash=False):
            c = c + F.scaled_dot_product_attention(a, x, b).unsqueeze(1)
        return self.up(c.squeeze(1)), kept
"""


def test_rows_that_paddle_s_own_function_refuses(source: Source) -> None:
    source.path.write_text(REWRITTEN)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 3, 4, 4))
    made = draft.write_draft(source, (x,), REWRITTEN)
    assert made.failure == "" and made.left == ()
    assert not [one for one in made.unproven if "no_grad" not in one]
    assert made.text.count("self.both(c)") == 1  # what is called once in PyTorch is called once
    for part in (
        "paddle.atanh(",
        "bool((paddle.arange(4) == (7)).any())",
        "paddle.einsum('bchw,bchw->bchw', *[a, x])",
        "paddle.nn.functional.softmax(",
        ".astype('int32'), (1, 1), value=True).astype(",
        "* (1 if weight is None else weight)",
        'assert (x < 9).all(), "large"',
        'assert len(x) > 0, (lambda: f"{len(x)} rows")()',
        "assert not x.is_sparse()",
        "hasattr(2, '__iter__')",
        "paddle.nn.attention.sdpa_kernel(paddle.nn.attention.SDPBackend.MATH)",
    ):
        assert part in made.text, part


ASKED = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal
from torch.utils.data import DataLoader, TensorDataset

torch.backends.cudnn.benchmark = True


class Net(nn.Module):
    __torch_function__ = None

    def __init__(self, draw=nn.init.xavier_normal_):
        super().__init__()
        self.conv = nn.ConvTranspose1d(4, 4, 1)
        self.held = draw(torch.empty(2, 2))
        self.bag = nn.EmbeddingBag(5, 4, mode="sum")
        self.conv.reset_parameters()
        self.conv.weight.data = nn.init.trunc_normal_(self.conv.weight.data.double(), std=0.5)
        self.loss, self.tails = nn.CrossEntropyLoss(), nn.ModuleList([nn.Tanh()])
        self.low = torch.contiguous_format if torch.xpu.is_available() else None

    def forward(self, x, n):
        y = self.conv(x[..., None])[..., 0] * 3.0
        if x.dtype == torch.complex32 or next(self.parameters()) is None:
            return y
        count = n[0, 0]
        y = self.tails[count - 1](y)
        y = y.repeat(count, 1)[: len(x)] * (count // 1)
        y = y + x[None, n[:, 0] - 1].mean(0)
        scores = torch.vmap(torch.vmap(lambda i, j: (i >= j) & (j > 0), (None, 0)), (0, None))
        mask = scores(torch.arange(3), torch.arange(3))
        options = {"dropout_p": 0.0}
        y = y + F.scaled_dot_product_attention(y[None], y[None], y[None], attn_mask=mask, **options)[0]
        y = F.normalize(y, dim=-1, eps=0.5) + Normal(y, 2.0).log_prob(x)
        y = y + (y > 0).cumsum(1).type(y.type())
        with torch._dynamo._trace_wrapped_higher_order_op.TransformGetItemToIndex():
            y = y + torch.fft.fftshift(x, dim=[1])
        y = y * torch.fft.fft(x).real + self.bag(n.expand(-1, 2)) + self.bag(n[:, 0], torch.arange(3))
        y = y / y.norm(p=2, dim=(0, 1), keepdim=True)
        target = x.new_tensor([1, -100, 2], dtype=torch.long)
        return y, self.loss(y, target) + F.cross_entropy(y, target, reduction="mean")

    def load(self, n):
        return DataLoader(TensorDataset(n, n), batch_size=2, shuffle=True, pin_memory=True)


def main(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.param_groups[0]["lr"] *= 0.5
    return optimizer.param_groups[0]["lr"]
"""


def test_what_only_pytorch_can_be_asked_and_what_a_helper_says(source: Source) -> None:
    source.path.write_text(ASKED)
    made = draft.write_draft(source, INPUTS, ASKED)
    assert made.failure == "" and made.left == ()
    named = {one.rpartition(": ")[2].partition(" ")[0] for one in made.unproven}
    assert named <= {"torch.vmap", "_ConvNd.reset_parameters", "Tensor.double"}, made.unproven
    for part in (
        "redraw_parameters(self.conv)",
        "def __init__(self, draw=xavier_normal_):",
        "    paddle.nn.init.xavier_normal_(tensor, *arguments, **named)\n    return tensor",
        "drawn(self.conv.weight.data",
        "None if False else None",
        "if x.dtype == None or next(iter(self.parameters())) is None:",
        "y.tile([count, 1])",
        "self.tails[(count - 1).item()](y)",
        "(count // paddle.full_like(count, (1)))",
        "x.unsqueeze(0)[:, n[:, 0] - 1]",
        "vmap(vmap(",
        "attend(y[None], y[None], y[None], attn_mask=mask, **options)",
        "paddle.linalg.norm(y, p=2.0, axis=-1, keepdim=True).clip(min=0.5)",
        "paddle.distribution.Normal(y, paddle.full_like(y, 2.0)).log_prob(x)",
        ".astype(y.dtype)",
        "with nullcontext():",
        "paddle.to_tensor([1, -100, 2], dtype=paddle.int64)",
        "paddle.fft.fft(x).real()",
        "EmbeddingBag(5, 4, mode=",
        "paddle.linalg.vector_norm(y, p=2, axis=(0, 1), keepdim=True)",
        "paddle.roll(x, ",
        "class OwnCrossEntropyLoss(paddle.nn.CrossEntropyLoss)",
        "cross_entropy(y, target, reduction='mean')",
        "paddle.io.DataLoader(paddle.io.TensorDataset([n, n]), batch_size=2, shuffle=True)",
        "    optimizer.set_lr(rate)\n    optimizer.set_lr(optimizer.get_lr() * 0.5)\n"
        "    return optimizer.get_lr()",
    ):
        assert part in made.text, (part, made.text)
    assert "__torch_" not in made.text
    assert "cudnn" not in made.text and "from contextlib import nullcontext" in made.text
    compile(made.text, "port", "exec")


HANDED_ON = """
from contextlib import nullcontext
from functools import partial
import torch
from torch import nn
from torch.amp import autocast

class Net(nn.Module):
    def __init__(self, stops=True):
        super().__init__()
        self.layer, self.keep = nn.Linear(4, 4), torch.detach if stops else nn.Identity()
        self.context = partial(autocast, "cuda", enabled=False)

    def forward(self, x, n):
        with self.context():
            y = self.layer(x)
        d = torch.get_default_dtype()
        y = y + self.keep(y) if d.is_floating_point and torch.finfo(d).bits > 16 else y
        small = nn.functional.interpolate(y.reshape(1, 1, 3, 4), size=(2, 3), mode="bicubic", antialias=True)
        return torch.cat([y, n], 1), small
"""


def test_functions_that_are_handed_on_stay_where_they_are(source: Source) -> None:
    made = draft.write_draft(source, INPUTS, HANDED_ON)
    assert not (made.left or made.unproven or made.rounded), (made.left, made.unproven)
    assert "self.keep(y)" in made.text and "return input.detach()" in made.text
    assert "self.context = partial(autocast," in made.text and "def autocast(" in made.text
    assert "d = getattr(paddle, paddle.get_default_dtype())" in made.text
    assert "one.astype(y.dtype) for one in [y, n]" in made.text
    resized = "resize_in_dtype(y.reshape(1, 1, 3, 4), size=(2, 3), mode='bicubic', antialias=True)"
    assert resized in made.text


SETTINGS = """
import torch

class Settings:
    def __init__(self):
        self.width = 3

    def __getattribute__(self, name):
        held = super().__getattribute__("__dict__")
        return held[name] if name in held else super().__getattribute__(name)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.settings = Settings()

    def forward(self, x):
        return torch.cat([x] * self.settings.width, 1)
"""


def test_what_reads_attributes_is_not_noted(write_source: WriteSource) -> None:
    made = draft.write_draft(write_source(SETTINGS), INPUTS[:1], SETTINGS)
    assert made.failure == "" and made.unseen == ()


PARTLY_APPLIED = """
import torch
from functools import partial

class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, times):
        ctx.times = times
        return x * times

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.times, None

tripled = partial(Tripled.apply)

class Net(torch.nn.Module):
    def forward(self, x):
        return tripled(x, 3.0)
"""


def test_a_custom_function_may_be_applied_in_part(write_source: WriteSource) -> None:
    made = draft.write_draft(write_source(PARTLY_APPLIED), INPUTS[:1], PARTLY_APPLIED)
    assert made.failure == "" and "return grad * ctx.times\n" in made.text


def test_a_method_that_paddle_lacks_is_not_converted(source: Source) -> None:
    text = TEXT.replace("h.max(1)", "h.as_strided_scatter(h, (3, 4), (4, 1)).max(1)")
    made = draft.write_draft(source, INPUTS, text)
    assert not made.failure and made.left[0] == "line 16: Tensor.as_strided_scatter"
    assert not any("as_strided_scatter" in one for one in made.unproven)


def test_words_of_the_source_stay_words_where_paddle_has_them(write_source: WriteSource) -> None:
    text = TEXT.replace(
        "self.cell =", "self.conv = nn.Conv1d(4, 4, kernel_size=1, stride=1)\n        self.cell ="
    )
    made = draft.write_draft(
        write_source(text), INPUTS, text.replace("h * n", "self.conv(h[..., None])[..., 0] * n")
    )
    assert "paddle.nn.Conv1D(4, 4, kernel_size=1, stride=1)" in made.text
    row = rows.read_rows()["torch.nn.Conv1d"][0]
    words = {"out_channels", "kernel_size"}
    assert (
        "(in_channels, out_channels=out_channels, kernel_size=kernel_size, "
        in slots._name_placed(row, words).target
    )
    assert slots._name_placed(row, {"in_channels"}) is row  # what follows it has no name
