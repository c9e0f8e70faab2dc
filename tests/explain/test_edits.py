"""Each kind of mistake: a faulty statement, what the reference has, and the text that must be offered."""

import ast

from reprod_align.explain.code import Code
from reprod_align.explain.donor import list_statements
from reprod_align.explain.edits import ROWS, Candidate, Site, list_candidates

import pytest

CASES = {
    "reference, a number": ("h = x / 8", "h = x / math.sqrt(n)", {}, "reference", "h = x / math.sqrt(n)"),
    "reference, a call left out": ("x = x", "x = self.dense(x)", {}, "reference", "x = self.dense(x)"),
    "reference, the port's own words stay": (
        "y = f( x,1 )", "y = self.drop(f(x, 1))", {}, "reference", "y = self.drop(f( x,1 ))"),
    "reference, a summand left out": ("y = f(x)", "y = f(x) + x", {}, "reference", "y = f(x) + x"),
    "reference, an argument": (
        "y = N(8)", "y = N(8, epsilon=1e-12)", {}, "reference", "y = N(8, epsilon=1e-12)"),
    "reference, one that is too many": ("y = N(8, b=1)", "y = N(8)", {}, "reference", "y = N(8)"),
    "reference, several of which one is too many": (
        "y = N(8, a=2, b=1)", "y = N(8, c=3, a=2)", {}, "reference", "y = N(8, a=2)"),
    "reference, an argument of a call that says more": (
        "y = pad(x, [0, n], form=1)", "y = pad(x, (n, 0))", {}, "reference", "y = pad(x, (n, 0), form=1)"),
    "reference, within a list that it writes as a tuple": (
        "y = f([a, 2])", "y = f((a, 3))", {}, "reference", "y = f([a, 3])"),
    "reference, within a list that it makes of a generator": (
        "y = L([f(i % 4) for i in n])", "y = L(f(i % 3) for i in n)", {}, "reference",
        "y = L([f(i % 3) for i in n])"),
    "reference, a method in the place of a function": (
        "y = F.softmax(x, 1)", "y = x.softmax(-1)", {}, "reference", "y = F.softmax(x, -1)"),
    "reference, an argument by its position": (
        "y = F.relu(f(x))", "y = F.relu(f(x), 0.2)", {}, "reference", "y = F.relu(f(x), 0.2)"),
    "table of calls": (
        "y = L(x)", "y = L(x, beta=2)",
        {"write_by_table": lambda: ast.parse("y = L(x, delta=2, is_huber=False)").body}, "table",
        "y = L(x, delta=2, is_huber=False)"),
    "elsewhere": (
        "y = f(x)", "", {"others": ast.parse("z = f(h)").body}, "elsewhere", "y = f(h)"),
    "tie, in place of a parameter of its own": (
        "self.w = make(shape=w.shape)", "", {"names": ["w"], "tie": ("self.w", "")}, "tie", "self.w = w"),
    "tie, handed to what holds it": (
        "self.head = Head(4, w=None)", "", {"tie": ("self.head.w", "self.emb.weight")}, "tie",
        "self.head = Head(4, w=self.emb.weight)"),
    "tie, set afterwards": (
        "self.head = Head(4)", "", {"tie": ("self.head.w", "self.emb.weight")}, "tie",
        "self.head = Head(4)\nself.head.w = self.emb.weight"),
    "surplus tie": (
        "self.head.weight = self.emb.weight", "", {}, "surplus-statement", "pass"),
    "setting": (
        "y = nn.Norm(8)", "", {"settings": {"eps": 1e-12}}, "setting", "y = nn.Norm(8, epsilon=1e-12)"),
    "setting, another value": (
        "y = nn.Norm(8, epsilon=1e-5)", "", {"settings": {"eps": 1e-12}}, "setting",
        "y = nn.Norm(8, epsilon=1e-12)"),
    "missing call": ("y = f(x)", "", {"called": ["self.g"]}, "missing-call", "y = self.g(f(x))"),
    "number": ("y = x * 0.5", "", {}, "number", "y = x * 1.0"),
    "number, negative": ("y = f(x, -2)", "", {}, "number", "y = f(x, -1)"),
    "number, of the reference": ("y = x * 2.0", "", {"numbers": [0.125]}, "number", "y = x * 0.125"),
    "switch, a constant": ("y = f(x, True)", "", {}, "number", "y = f(x, False)"),
    "operator": ("y = a - b", "", {}, "operator", "y = a + b"),
    "operator, a sign": ("y = -a", "", {}, "operator", "y = a"),
    "operator, precedence": ("y = (a + b) * c", "", {}, "operator", "y = ((a * b)) * c"),
    "function": ("y = F.relu(x)", "", {}, "function", "y = F.gelu(x)"),
    "function, a root": ("y = P.square(x)", "", {}, "function", "y = P.sqrt(x)"),
    "an operand, of another statement of the reference": (
        "p = P.cast(mask, 'int64') - 1", "", {"others": ast.parse("c = P.cumsum(mask, axis=1)").body},
        "elsewhere", "p = P.cumsum(mask, axis=1) - 1"),
    "order of operands": ("y = a - b", "", {}, "order", "y = b - a"),
    "order of axes": ("y = x.transpose([0, 1, 2])", "", {}, "order", "y = x.transpose([0, 2, 1])"),
    "order of arguments": ("y = f(a, b, c=1)", "", {}, "order", "y = f(b, a, c=1)"),
    "order of what is assigned": ("k, q = f(x)", "", {}, "unpacking", "q, k = f(x)"),
    "a layer that is made and not called": (
        "y = f(x)", "", {"idle": ["self.drop"]}, "unread", "y = self.drop(f(x))"),
    "a variable that is not read": ("\ny = x", "", {"unread": {"b": range(2, 3)}}, "unread", "y = x + b"),
    "comparison": ("seen = a >= b", "", {}, "comparison", "seen = a < b"),
    "condition": ("if a < b: pass", "", {}, "condition", "if a >= b: pass"),
    "condition, of a choice": ("y = a if a < b else c", "", {}, "condition", "y = a if a >= b else c"),
    "condition, turned round": ("if a: pass", "", {}, "condition", "if not a: pass"),
    "condition, one branch": ("y = a if c else b", "", {}, "condition", "y = b"),
    "a call that the reference makes nowhere": (
        "y = P.roll(f(x), 1)", "z = f(h)", {}, "foreign-call", "y = f(x)"),
    "a method that the reference calls nowhere": (
        "y = f(x.roll(1))", "z = f(h)", {"names": ["x"]}, "foreign-call", "y = f(x)"),
    "surplus call": ("y = F.relu(x)", "", {}, "surplus", "y = x"),
    "surplus method": ("y = x.abs()", "", {}, "surplus", "y = x"),
    "surplus argument": ("y = f(x, axis=1)", "", {}, "surplus", "y = f(x)"),
    "surplus summand": ("y = a + b", "", {}, "surplus", "y = a"),
    "name": ("y = f(key)", "", {"names": ["key", "query"]}, "name", "y = f(query)"),
    "argument, of the table of APIs": (
        "y = F.gelu(x)", "", {}, "argument", "y = F.gelu(x, approximate=True)"),
    "argument, a variable": (
        "y = self.f(x)", "", {"names": ["mask"]}, "argument", "y = self.f(x, mask=mask)"),
    "mask, left out": (
        "y = f(x, None)", "", {"names": ["x", "attention_mask"]}, "mask", "y = f(x, attention_mask)"),
    "mask, an argument": (
        "y = self.f(x, src_mask=None)", "", {"names": ["x", "mask"]}, "mask", "y = self.f(x, src_mask=mask)"),
    "mask, an argument that the layer takes": (
        "y = self.f(x)", "", {"names": ["mask"], "takes": {"self.f": ["x", "src_mask"]}}, "mask",
        "y = self.f(x, src_mask=mask)"),
    "the whole, of a variable of the same name": (
        "m = x.mean(1)", "m = (x * w).sum(1) / w.sum(1)", {}, "reference", "m = (x * w).sum(1) / w.sum(1)"),
    "mask, too weak": ("m = (1 - m) * -1.0", "", {}, "mask", "m = (1 - m) * -10000.0"),
    "repeat, the whole": (
        "m = paddle.tile(m, [n, 1, 1])", "", {}, "repeat", "m = paddle.repeat_interleave(m, n, axis=0)"),
    "repeat, each element": (
        "m = m.repeat_interleave(n, axis=1)", "", {}, "repeat", "m = m.tile([1, n, 1])"),
    "order of statements": (
        "x = f(x)  # first\nx = g(x)", "", {}, "statement-order", "x = g(x)  # first\nx = f(x)"),
    "surplus transpose": ("y = w.T", "", {}, "surplus", "y = w"),
    "surplus statement": ("x = f(x)", "", {}, "surplus-statement", "pass"),
    "missing statement": (
        "y = f(x)", "", {"missing": ast.parse("x = g(x)").body}, "missing-statement",
        "x = g(x)\ny = f(x)"),
    "mask, infinite": (
        "y = full(s, -float('inf'))", "", {}, "mask", "y = full(s, -10000.0)"),
    "mask of 1 for what counts": (
        "mask = mask.unsqueeze(1)", "", {}, "mask-sense", "mask = (1 - mask.unsqueeze(1)) * -10000.0"),
    "mask of 1 for what counts, a factor": (
        "mask = mask.unsqueeze(1) * -1e4", "", {}, "mask-sense", "mask = (1 - mask.unsqueeze(1)) * -1e4"),
    "a mask that is compared, turned round": (
        "mask = a[:, None] < a[None]", "", {}, "mask-sense", "mask = 1 - (a[:, None] < a[None])"),
    "switch": (
        "y = f(x, return_dict=return_dict)", "", {"switches": ["return_dict"]}, "switch",
        "y = f(x, return_dict=True)"),
    "dropout in a stock layer": (
        "self.mid = N(4)", "", {"dropouts": ["bert.mid.drop"]}, "stock-dropout",
        "self.mid = N(4)\nself.mid.drop.p = 0.0"),
    "dropout in the layers of a stack": (
        "self.mid = N(4)", "", {"dropouts": ["mid.layers.0.drop"]}, "stock-dropout",
        "self.mid = N(4)\nfor layer in self.mid.layers:\n    layer.drop.p = 0.0"),
    "setting of a configuration": (
        "y = N(4 * c.width)", "", {"fields": {"c": ["inner_width"]}}, "field", "y = N(c.inner_width)"),
    "form, an element": ("y = f(x)", "", {}, "form", "y = f(x[0])"),
    "form, another axis": ("y = f(x) * w[i]", "", {}, "form", "y = f(x) * w[i].unsqueeze(-1)"),
    "form, a dtype": ("y = where(m[:, 1], a)", "", {}, "form", "y = where(m[:, 1].astype(\"bool\"), a)"),
    "form, the first token of another element": ("y = x[1]", "", {}, "form", "y = x[0][:, 0]"),
    "surplus element": ("return x, None", "", {}, "surplus", "return x"),
    "several statements in place of one": (
        "p = s(m) - 1", "p = s(m)", {"after": ast.parse("p = p * m - 1\nq = p").body}, "missing-statement",
        "p = s(m)\np = p * m - 1"),
    "missing summand, taken away": (
        "y = f(x)", "", {"names": ["x"]}, "missing-summand", "y = f(x) - x"),
    "missing summand": ("y = f(x)", "", {"names": ["x"]}, "missing-summand", "y = f(x) + x"),
}  # fmt: skip


def offer(port: str, reference: str, known: dict) -> list[tuple[str, str]]:
    code = Code(port + "\n")
    donor = ast.parse(reference).body[0] if reference else None
    site = Site(code, code.tree.body[0], donor, **known)
    return [(one.kind, code.splice([one.edit]).strip()) for one in list_candidates(site)]


@pytest.mark.parametrize("name", CASES)
def test_the_right_text_is_offered(name: str) -> None:
    port, reference, known, kind, wanted = CASES[name]
    assert (kind, wanted) in offer(port, reference, known)


def test_a_call_is_offered_first_where_the_value_is_made() -> None:
    code = Code("def f(y):\n    x = y\n    return self.g(x)\n")
    site = Site(code, code.tree.body[0].body[1], called=["self.d"])
    made = [code.splice([one.edit]) for one in list_candidates(site, ["missing-call"])]
    first = made.index("def f(y):\n    x = self.d(y)\n    return self.g(x)\n")
    assert first < made.index("def f(y):\n    x = y\n    return self.g(self.d(x))\n")


def test_what_the_reference_has_in_this_order_is_not_exchanged() -> None:
    known = ("y = f(q, k, c=1)", "y = g(q, k.transpose(1, 2))", {})
    assert not [text for kind, text in offer(*known) if kind == "order"]


def test_only_a_condition_is_made_of_booleans() -> None:
    assert not [text for _, text in offer("y = f(mask) + x", "", {}) if "bool" in text]


def test_each_kind_has_a_case() -> None:
    apart = {"definition", "run", "stopped-gradient", "gradient-not-stopped"}
    assert {case[3] for case in CASES.values()} | apart == set(ROWS)


STOPPED = """\
def f(x):
    with paddle.no_grad(), timed():
        y = g(x)
    with paddle.set_grad_enabled(False) :
        # a comment

        if y is None:
            y = x
        z = h(
            y)
    with paddle.set_grad_enabled(True): return z
"""


def test_what_stops_gradients_is_left_out_and_its_lines_move_to_the_left() -> None:
    code = Code(STOPPED)
    made = [
        code.splice([one.edit])
        for statement in list_statements(code.tree.body[0])
        for one in list_candidates(Site(code, statement), ["stopped-gradient"])
    ]
    head = "    with paddle.set_grad_enabled(False) :\n"
    before, inside, after = (
        STOPPED.partition(head)[0],
        *STOPPED.partition(head)[2].split("    with"),
    )
    moved = "".join(line.removeprefix("    ") for line in inside.splitlines(keepends=True))
    assert set(made) == {
        STOPPED.replace("paddle.no_grad(), timed()", "timed()"),
        f"{before}{moved}    with{after}",
    }


@pytest.mark.parametrize("decorator", ["@paddle.no_grad()", "@paddle.no_grad"])
def test_a_decorator_that_stops_gradients_is_left_out(decorator: str) -> None:
    code = Code(f"class A:\n    @other\n    {decorator}\n    def f(self):\n        return 1\n")
    [one] = list_candidates(Site(code, code.tree.body[0].body[0].body[0]), ["stopped-gradient"])
    assert code.splice([one.edit]) == "class A:\n    @other\n    def f(self):\n        return 1\n"


def test_a_variable_of_the_references_is_defined_where_the_reference_defines_it() -> None:
    code = Code("def f(x):\n    x = flat( x )\n    return x.reshape([-1, self.n])\n")
    first, last = code.tree.body[0].body
    donor = ast.parse("return x.reshape([-1, n])").body[0]
    site = Site(code, last, donor, given={"n": (first, "n = x.shape[1]")})
    made = [code.splice([one.edit]) for one in list_candidates(site, ["definition"])]
    assert (
        "def f(x):\n    n = x.shape[1]\n    x = flat( x )\n    return x.reshape([-1, n])\n" in made
    )


def test_a_switch_is_set_at_all_places_at_once() -> None:
    text = "def f(x, d=None):\n    x = g(x, d=d)  # one\n    return h(x, d=d)\n"
    code = Code(text)
    site = Site(code, code.tree.body[0].body[0], switches=["d"])
    made = [code.splice([one.edit]) for one in list_candidates(site, ["switch"])]
    assert text.replace("d=d", "d=True") in made and text.replace("d=d", "d=True", 1) in made


def test_a_text_is_offered_once_and_never_as_it_is() -> None:
    found = offer("y = f(a, b, axis=-1) + 2 * self.g(a)", "y = self.g(a) * 2 + f(b, a, axis=1)", {
        "names": ["a", "b", "self.g", "self.h"], "called": ["self.h"], "numbers": [2, 4],
    })  # fmt: skip
    texts = [text for _, text in found]
    assert len(texts) > 40 and "y = f(a, b, axis=-1) + 2 * self.g(a)" not in texts
    assert len(set(texts)) >= 0.9 * len(texts)


def test_a_statement_that_the_reference_has_too_is_settled() -> None:
    code = Code("y = f( x )\n")
    assert Site(code, code.tree.body[0], ast.parse("y = f(x)").body[0]).is_settled
    assert not Site(code, code.tree.body[0], ast.parse("y = f(z)").body[0]).is_settled
    assert not Site(code, code.tree.body[0]).is_settled


def test_only_the_rows_that_are_wanted_are_used() -> None:
    code = Code("y = a - 1\n")
    found = list(list_candidates(Site(code, code.tree.body[0]), ["operator"]))
    assert found == [Candidate("operator", found[0].edit, 1, "a - 1", "a + 1")]


def test_what_a_lambda_gives_has_candidates_too() -> None:
    code = Code("f = lambda x, mask: x - 1\n")
    (statement,) = list_statements(code.tree.body[0].value)
    texts = [one.after for one in list_candidates(Site(code, statement))]
    assert "x + 1" in texts


@pytest.mark.parametrize(
    ("test", "reference", "turned"),
    [
        ("self.config.fused", "if config.before: x = f(x)", False),
        ("self.config.fused", "if config.fused: x = f(x)", True),
        ("config.fused", "y = f(x)", False),
        ("self.before", "y = f(x)", True),
    ],
)
def test_a_choice_that_only_the_port_has_is_not_turned(
    test: str, reference: str, turned: bool
) -> None:
    code = Code(f"if {test}: y = g(x)\n")
    site = Site(code, code.tree.body[0], others=ast.parse(reference).body)
    texts = [one.after for one in list_candidates(site, ["condition"])]
    assert (f"not {test}" in texts) is turned


def test_names_in_the_order_in_which_a_function_returns_them_are_not_exchanged() -> None:
    text = "def make(self):\n    return (q, k, None) if short else (q, k, cache)\n"
    for names, offered in (
        ("q, k, c", {"c, k, q", "q, c, k"}),
        ("k, q, c", {"q, k, c", "c, q, k", "k, c, q"}),
    ):
        code = Code(f"{text}\n{names} = self.make()\n")
        found = list_candidates(Site(code, code.tree.body[-1]), ("unpacking",))
        assert {one.after for one in found} == offered
