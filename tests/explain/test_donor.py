"""The reference's code in the port's words, and which statements stand for each other."""

import ast

from reprod_align.explain import donor
from reprod_align.explain.code import list_imports
from reprod_align.explain.donor import (
    likeness,
    list_statements,
    map_names,
    pair_exchanged,
    pair_statements,
    translate,
    translate_by_table,
)

import pytest

TORCH = list_imports(
    ast.parse(
        "import torch\nfrom functools import partial\nfrom torch import nn\nimport torch.nn.functional as F"
    )
)
PADDLE = list_imports(
    ast.parse("import paddle\nimport paddle.nn as nn\nimport paddle.nn.functional as F")
)
WORDS = {
    "torch.cat([a, b], dim=-1)": "paddle.concat([a, b], axis=-1)",
    "nn.LayerNorm(8, eps=1e-12)": "nn.LayerNorm(8, epsilon=1e-12)",
    "F.gelu(x)": "F.gelu(x)",
    "torch.softmax(x, dim=1)": "F.softmax(x, axis=1)",
    "nn.Conv2d(3, 8, 3, bias=False)": "nn.Conv2D(3, 8, 3, bias_attr=False)",
    "x.view(b, -1)": "x.reshape([b, -1])",
    "x.permute(0, 2, 1)": "x.transpose([0, 2, 1])",
    "x.transpose(1, 2)": "x.swapaxes(1, 2)",
    "x.size(0)": "x.shape[0]",
    "x.size()": "x.shape",
    "x.contiguous().view(2)": "x.reshape([2])",
    "x.float()": "x.astype('float32')",
    "self.dense(x)": "self.dense(x)",
    "nn.ReLU(inplace=True)": "nn.ReLU()",
    "torch.optim.AdamW(p, lr=0.1)": "paddle.optimizer.AdamW(p, learning_rate=0.1)",
    "torch": "paddle",
    "torch.fft.fftn(x, dim=(1, 2))": "paddle.fft.fftn(x, axes=(1, 2))",
    "partial(torch.fft.fftn, dim=1)": "lambda *given: paddle.fft.fftn(*given, axes=1)",
    "torch.zeros(2, dtype=torch.long)": "paddle.zeros(2, dtype=paddle.int64)",
}


@pytest.mark.parametrize("text", WORDS)
def test_an_expression_is_translated(text: str) -> None:
    node = ast.parse(text, mode="eval").body
    assert ast.unparse(translate(node, {}, TORCH, PADDLE)) == WORDS[text]
    assert ast.unparse(node) == ast.unparse(ast.parse(text, mode="eval").body)


def test_a_package_that_the_port_imports_by_its_full_name_is_named_so() -> None:
    node = ast.parse("F.gelu(x)", mode="eval").body
    assert (
        ast.unparse(translate(node, {}, TORCH, {"paddle": "paddle"}))
        == "paddle.nn.functional.gelu(x)"
    )


def test_variables_and_attributes_are_the_ports() -> None:
    node = ast.parse("self.query(hidden)", mode="eval").body
    made = translate(node, {"self.query": "self.q_proj", "hidden": "x"}, TORCH, PADDLE)
    assert ast.unparse(made) == "self.q_proj(x)"


def test_statements_are_paired_in_order_and_name_each_others_variables() -> None:
    port = list_statements(ast.parse("q = self.q_proj(x)\nk = self.k_proj(x)\nreturn_ = q @ k"))
    donors = list_statements(ast.parse(
        "query = self.query(h)\nkey = self.key(h)\nmask = make(h)\nout = query @ key"
    ))  # fmt: skip
    again = list_statements(ast.parse("a = self.q_proj(x)\nb = extra(y)\nc = self.k_proj(x)"))
    assert pair_statements(port, again) == [(0, 0), (1, 2)]
    names = map_names([(port[0], donors[0]), (port[1], donors[1])])
    assert names["self.query"] == "self.q_proj" and names["h"] == "x" and names["key"] == "k"


def test_statements_in_another_order_are_paired_by_what_they_give() -> None:
    port = list_statements(ast.parse("p = self.place(kinds)\nk = self.kind(kinds)\nh = k + p"))
    again = list_statements(ast.parse("k = self.kind(kinds)\nh = x + k\np = self.place(places)"))
    met = pair_statements(port, again)
    assert met == [(1, 0), (2, 1)] and pair_exchanged(port, again, met) == [(0, 2)]
    other = list_statements(ast.parse("k = self.kind(kinds)\nh = x + k\np = far(a, b, c)"))
    assert pair_exchanged(port, other, met) == []


def test_likeness_is_by_words() -> None:
    one, same, other = (ast.parse(text) for text in ("f(x, 1) + y", "f(x, 1) + y", "g(z)"))
    assert likeness(one, same) == 1 and likeness(one, other) == 0
    assert 0 < likeness(one, ast.parse("f(x, 2)")) < 1


def test_texts_are_no_statements_and_branches_are() -> None:
    found = list_statements(ast.parse('"""Doc."""\nif a:\n    b = 1\nfor c in d:\n    e(c)\npass'))
    assert [type(node).__name__ for node in found] == ["If", "Assign", "For", "Expr"]


@pytest.mark.parametrize("port", ["torch", "paddle"])
def test_every_counterpart_can_be_written(port: str) -> None:
    """An entry of the API table may name its APIs in words."""
    found = donor._find_counterparts(port)
    assert len(found) > 100
    for name in found.values():
        assert ast.parse(name, mode="eval").body


BY_TABLE = {
    "F.smooth_l1_loss(x, y, beta=0.5)": "F.smooth_l1_loss(x, y, delta=0.5, is_huber=False)",
    "torch.optim.Adam(p, betas=(0.9, 0.98))": (
        "paddle.optimizer.Adam(learning_rate=0.001, parameters=p, beta1=0.9, beta2=0.98)"
    ),
    "nn.Linear(3, 4, bias=False)": "nn.Linear(3, 4, bias_attr=False)",
    "f(x).softmax(dim=-1)": "F.softmax(f(x), axis=-1)",
}


@pytest.mark.parametrize("torch", BY_TABLE)
def test_a_call_is_written_as_the_table_of_calls_has_it(torch: str) -> None:
    node = ast.parse(torch, mode="eval").body
    assert BY_TABLE[torch] in [
        ast.unparse(one) for one in translate_by_table(node, {}, TORCH, PADDLE)
    ]


@pytest.mark.parametrize("torch", ["own(x)", "torch.stack(*parts)", "F.gelu(x, unknown=1)"])
def test_what_no_row_takes_is_not_written(torch: str) -> None:
    node = ast.parse(torch, mode="eval").body
    assert [*translate_by_table(node, {}, TORCH, PADDLE)] == []
