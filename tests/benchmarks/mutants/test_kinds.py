"""Each kind of mistake: a splice that compiles, changes its span alone, and can be taken back."""

import ast

from benchmarks.mutants.kinds import KINDS, Mutation, mutate, parses
from benchmarks.mutants.source import Source, Splice, covering

import pytest

# Each kind finds something here; é and the comments are to stay byte for byte.
PORT = '''class Block(nn.Layer):  # é
    def __init__(self, table_weight, size=8):
        super().__init__()
        self.norm = nn.LayerNorm(size, epsilon=1e-12)
        self.drop = nn.Dropout(0.1)  # stays
        self.act = make_activation("gelu")
        self.head_weight = table_weight
        self.inv_freq = 1.0 / (10000 ** (paddle.arange(0, 8, 2) / 8))

    def forward(self, x, mask, scale=None):
        """Retürn something."""
        x = self.norm(x)
        x = self.drop(x)
        mask = (1.0 - mask) * -1e4
        q, k = x.split(2, axis=-1)
        scores = paddle.matmul(q, k, transpose_y=True) / 2.0 + mask
        if scale is not None:
            scores = scores * scale
        probs = F.softmax(
            scores, axis=-1
        )
        out = self.act(self.drop(probs[:, 0])) - q
        out = paddle.transpose(F.gelu(out, approximate=True), [0, 2, 1])
        return out
'''
# kind -> a change that it must make: what stands there, and what takes its place
EXPECTED = {
    "argument value": ("True", "False"),
    "argument left out": (", approximate=True", ""),
    "axis": ("[0, 2, 1]", "[0, 1, 2]"),
    "function": ("softmax", "log_softmax"),
    "activation by name": ('"gelu"', "'relu'"),
    "operator": ("-", "+"),
    "operand order": ("q, k", "k, q"),
    "constant": ("2.0", "4.0"),
    "index": ("0", "-1"),
    "layer setting": ("1e-12", "1e-3"),
    "mask": ("1.0 - mask", "mask"),
    "mask factor": ("-1e4", "-1.0"),
    "branch": ("scale is not None", "not (scale is not None)"),
    "layout": ("q, k", "k, q"),
    "tie": (
        "table_weight",
        "self.create_parameter(shape=table_weight.shape, dtype=table_weight.dtype)",
    ),
    "call left out": ("self.norm(x)", "x"),
    "summand left out": ("self.act(self.drop(probs[:, 0])) - q", "q"),
    "call moved": (
        "self.norm(x)\n        x = self.drop(x)",
        "self.drop(x)\n        x = self.norm(x)",
    ),
    "call repeated": ("self.norm(x)", "self.norm(self.norm(x))"),
    "number in a table": ("10000", "20000"),
    "result permuted": ("out", "paddle.roll(out, 1, -1)"),
    "another value": ("k", "x"),
    "gradient cut": ("self.norm(x)", "self.norm(x).detach()"),
}


def find(kind: str) -> list[Mutation]:
    return mutate(kind, Source(PORT), frozenset(range(1, 99)))


def test_every_kind_is_tested() -> None:
    assert list(EXPECTED) == list(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_makes_the_mistake_that_it_is_called_after(kind: str) -> None:
    made = {(it.before, it.splice.after) for it in find(kind)}
    assert EXPECTED[kind] in made, made


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_compiles_differs_by_its_span_alone_and_can_be_taken_back(kind: str) -> None:
    held = PORT.encode()
    for mutation in find(kind):
        splice, mutated = mutation.splice, mutation.splice.apply(PORT)
        assert parses(mutated) and mutated != PORT
        changed = mutated.encode()
        end = splice.start + len(splice.after.encode())
        assert changed[: splice.start] == held[: splice.start]
        assert changed[end:] == held[splice.end :]
        assert changed[splice.start : end].decode() == splice.after
        assert held[splice.start : splice.end].decode() == mutation.before
        assert splice.undo(mutated, mutation.before) == PORT


@pytest.mark.parametrize("kind", KINDS)
def test_a_mutation_knows_its_line_its_statement_and_what_names_it(kind: str) -> None:
    starts = {it.lineno for it in ast.walk(ast.parse(PORT)) if isinstance(it, ast.stmt)}
    for mutation in find(kind):
        before = PORT.encode()[: mutation.splice.start].decode()
        assert mutation.line == before.count("\n") + 1
        assert mutation.statement <= mutation.line
        assert mutation.statement in starts
        assert mutation.cause.element and mutation.cause.facts


def test_lines_that_do_not_run_are_left_alone() -> None:
    assert {it.line for it in mutate("call left out", Source(PORT), frozenset({12}))} == {12}


def test_places_are_counted_in_bytes() -> None:
    assert Splice(3, 4, "b").apply("é a") == "é b"


@pytest.mark.parametrize("kind", KINDS)
def test_line_ends_stay_as_they_are(kind: str) -> None:
    text = PORT.replace("\n", "\r\n")
    made = mutate(kind, Source(text), frozenset(range(1, 99)))
    assert [(it.line, it.cause) for it in made] == [(it.line, it.cause) for it in find(kind)]
    for mutation in made:
        mutated = mutation.splice.apply(text)
        assert parses(mutated) and "\n" not in mutated.replace("\r\n", "")
        assert mutation.splice.undo(mutated, mutation.before) == text


def test_a_call_s_names_come_from_paddle_where_the_port_gives_none() -> None:
    source = Source("def f(x):\n    return F.softmax(x, 1), x.mean(1), self.norm(x, 1)\n")
    made = mutate("axis", source, frozenset({2}))
    assert [(it.before, it.cause.name, it.cause.owner) for it in made] == [
        ("1", "axis", "softmax"),
        ("1", "axis", "mean"),
    ]


def test_the_expressions_that_hold_a_change_come_from_the_inside() -> None:
    source = Source("y = f(g(x, a), axis=1)\n")
    assert covering(source, 8, 9) == ["x", "g(x, a)", "f(g(x, a), axis=1)"]
    assert covering(source, 9, 9) == ["g(x, a)", "f(g(x, a), axis=1)"]
    assert covering(source, 20, 21) == ["f(g(x, a), axis=1)"]
