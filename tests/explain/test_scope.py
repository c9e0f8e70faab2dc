"""Where an edit may stand: the port's own functions, each beside the reference's."""

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from reprod_align.explain.code import Code
from reprod_align.explain.edits import Site, list_candidates
from reprod_align.explain.executed import LAMBDA
from reprod_align.explain.scope import (
    Donor,
    Region,
    Scope,
    Sources,
    find_around,
    find_named,
    find_owner,
    find_scope,
    list_sites,
    name_around,
    read_place,
)
from reprod_align.pair import paddle_side, torch_side
from reprod_align.report import Finding
from tests.mending.pairs import PAIR, open_bench, write_pair

import pytest
import torch


def test_functions_are_found_by_line_and_by_name() -> None:
    code = Code(PAIR)
    line = PAIR[: PAIR.index("# the residual")].count("\n") + 1
    assert name_around(code, line) == "paddle_model.Net.forward"
    around = find_around(code, line)
    assert around is not None and around is find_named(code, "paddle_model.Net.forward")
    assert name_around(code, 2) == "" and find_named(code, "missing") is None


def test_a_place_is_a_file_and_a_line() -> None:
    assert read_place("models/a.py:12") == (str(Path("models/a.py").resolve()), 12)
    assert read_place(None) == ("", 0) == read_place("")


def test_only_the_ports_code_may_be_edited(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an argument")
    with open_bench(path) as bench:
        report = bench.judge_fully({})
        port = bench.make_port()
        scope = find_scope(report.findings[0], bench.reference, port, report.pairs, Sources())
    assert {one.name for one in scope.regions} == {
        "paddle_model.Net.__init__",
        "paddle_model.Net.forward",
    }
    assert scope.settings["epsilon"] == 1e-12 and scope.place[0] == str(path)
    code = Code(path.read_text())
    sites = list_sites(scope, scope.regions[0], code)
    assert sites[0].statement.lineno == scope.place[1]  # the finding's line first
    assert "1e-12" in ast_text(sites[0].donor) and not sites[0].is_settled
    assert any(site.is_settled for site in sites)


def test_a_function_without_a_name_around_the_line_comes_first(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    text = path.read_text().replace("F.softmax(scores", "(lambda s: F.softmax(s", 1)
    text = text.replace(
        ") @ h\n            return paddle", "))(scores) @ h\n            return paddle"
    )
    assert "(lambda s: F.softmax(s" in text
    path.write_text(text)
    with open_bench(path) as bench:
        report, ran = bench.judge_fully({}), bench.watch({})
        port, known = bench.make_port(), report.pairs
        line = text[: text.index("lambda s")].count("\n") + 1
        finding = replace(report.findings[0], paddle_line=f"{path}:{line}")
        scope = find_scope(finding, bench.reference, port, known, Sources(), ran)
    assert [one.name for one in scope.regions[:2]] == [
        f"{LAMBDA}{line}",
        "paddle_model.Net.forward",
    ]
    assert [site.statement.lineno for site in list_sites(scope, scope.regions[0], Code(text))] == [
        line
    ]


def test_the_references_text_names_the_ports_modules(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "a function", "a summand left out")
    with open_bench(path) as bench:
        report = bench.judge_fully({})
        port = bench.make_port()
        scope = find_scope(report.findings[0], bench.reference, port, report.pairs, Sources())
    assert scope.children["self.out"] == "self.proj"
    sites = list_sites(scope, scope.regions[0], Code(path.read_text()))
    assert "self.proj(mixed)" in ast_text(sites[0].donor)


def test_a_text_in_memory_goes_before_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n")
    code = Sources({str(path): "b = 2\n"}).code(str(path))
    assert code is not None and code.text == "b = 2\n"
    assert Sources().code(str(tmp_path / "missing.py")) is None


PORT = """
import paddle


class Words(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.table, self.drop = paddle.nn.Embedding(9, 4), paddle.nn.Dropout(0.5)

    def forward(self, x):
        return 2 * self.table(x)


class Port(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.dense = Words(), paddle.nn.Linear(4, 3)

    def forward(self, x):
        return self.dense(self.words(x))
"""


class Reference(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.dense = torch.nn.Embedding(9, 4), torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dense(self.table(x))  # type: ignore[no-any-return]


def test_the_code_of_a_module_without_a_counterpart_may_be_edited_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the own code of the model around it; what its class makes and never reads can be called."""
    (tmp_path / "lone_port.py").write_text(PORT)
    monkeypatch.syspath_prepend(tmp_path)
    sides = torch_side(Reference()), paddle_side(import_module("lone_port").Port())
    finding = Finding("forward", "", "", "it differs", 1.0, 0.0)
    scope = find_scope(
        finding, *sides, {"": "", "dense": "dense", "table": "words.table"}, Sources()
    )
    region = next(one for one in scope.regions if one.name == "Words.forward")
    (site,) = list_sites(scope, region, Code(PORT))
    assert "self.drop" in site.called and "self.table" not in site.called
    assert site.idle == ["self.drop"]


def ast_text(node: object) -> str:
    import ast

    return ast.unparse(node)  # type: ignore[arg-type]


ELSEWHERE = """\
import paddle


class Block(paddle.nn.Layer):
    def forward(self, x):
        return x * 2


class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.block = Block()


def run_twice(net, x):
    return net.block(net.block(x))


Net.forward = run_twice
"""


def test_a_forward_that_is_written_elsewhere_may_be_edited_and_has_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "elsewhere_net.py"
    path.write_text(ELSEWHERE)
    monkeypatch.syspath_prepend(str(tmp_path))
    port = paddle_side(import_module("elsewhere_net").Net())
    block, outer = (
        ELSEWHERE[: ELSEWHERE.index(text)].count("\n") + 1 for text in ("x * 2", "net.block(net")
    )
    finding = Finding("forward", "", "block", "", 1.0, 0.0, kind="module",
                      paddle_line=f"{path}:{block}")  # fmt: skip
    scope = find_scope(finding, torch_side(torch.nn.Identity()), port, {}, Sources())
    assert [one.name for one in scope.regions][0] == "Block.forward"
    assert "run_twice" in {one.name for one in scope.regions}
    file = str(path.resolve())
    assert find_owner(port, "block", file, block) == "block"
    assert find_owner(port, "block", file, outer) == ""
    assert find_owner(port, "block", file, 1) is None
    assert find_owner(port, "block", "other.py", block) is None


TORCH_CLASS = """
class Net(Module):
    def __init__(self, config):
        self.dense = nn.Linear(config.width, config.inner_width)
        self.make_mixer()

    def make_mixer(self):
        self.mix = partial(torch.fft.fftn, dim=1)

    def forward(self, x, other=None):
        count = x.shape[1] if x is not None else other.shape[1]
        x = self.flat(x)
        return x.view(-1, count)
"""
PADDLE_CLASS = """
class Net(Layer):
    def __init__(self, config):
        self.dense = nn.Linear(config.width, 4 * config.width)
        self.mix = paddle.fft.fftn

    def forward(self, x, full=None, rate=0.1):
        x = self.flat(x)
        return x.reshape([-1, self.count])
"""


def sites_of(name: str) -> list[Site]:
    """Return the statements of a method of the port, beside the reference's class."""
    held = Code(TORCH_CLASS).tree.body[0]
    imports = {"torch": "torch", "nn": "torch.nn", "partial": "functools.partial"}
    donors = [Donor(one, imports) for one in held.body]
    scope = Scope([], ("", 0), {}, [])
    return list_sites(scope, Region("port.py", f"Net.{name}", donors), Code(PADDLE_CLASS))


def test_a_variable_that_the_port_lacks_comes_with_its_definition() -> None:
    first, last = sites_of("forward")
    before, text = last.given["count"]
    assert before is first.statement and text == "count = x.shape[1]"  # the port knows no `other`
    assert "x" not in last.given


def test_the_references_methods_stand_for_what_the_port_says_in_one() -> None:
    found = {ast_text(site.statement): ast_text(site.donor) for site in sites_of("__init__")}
    assert found["self.mix = paddle.fft.fftn"] == (
        "self.mix = lambda *given: paddle.fft.fftn(*given, axes=1)"
    )


def test_a_function_of_the_port_is_no_donor_of_its_own() -> None:
    """Both sides may be written in one file: what the reference says there differs from the port."""
    text = "def torch_loss(x):\n    return f(x, rate=0.1)\n\ndef paddle_loss(x):\n    return f(x)\n"
    code = Code(text)
    donors = [Donor(one, {}, "pair.py") for one in code.tree.body]
    found = list_sites(Scope([], ("", 0), {}, []), Region("pair.py", "paddle_loss", donors), code)
    assert [ast_text(one.donor) for one in found] == ["return f(x, rate=0.1)"]


def test_settings_that_the_reference_reads_and_switches_are_known() -> None:
    assert set(sites_of("__init__")[0].fields["config"]) == {"width", "inner_width"}
    assert sites_of("forward")[0].switches == ["full"]


def site_of(reference: str, port: str, children: dict[str, str] | None = None) -> Site:
    """Return the first statement of a function of the port, beside the reference's."""
    donor, code = Donor(Code(reference).tree.body[0], {"torch": "torch"}), Code(port)
    scope = Scope([], ("", 0), {}, [], children=children or {})
    return list_sites(scope, Region("port.py", "run", [donor]), code)[0]


def test_a_parameter_by_another_name_is_known_by_its_place() -> None:
    site = site_of(
        "def forward(self, wide, residual):\n    return self.norm(self.dense(wide) + residual)\n",
        "def run(self, context, residual):\n    return self.norm(self.dense(context)) + residual\n",
    )
    assert ast_text(site.donor) == "return self.norm(self.dense(context) + residual)"


def test_a_child_that_the_port_leaves_out_keeps_its_name() -> None:
    site = site_of(
        "def forward(self, x):\n    return x + self.down(self.act(self.up(x)))\n",
        "def run(self, x):\n    return x + self.down(self.up(x))\n",
        {"self.up": "self.up", "self.act": "self.act", "self.down": "self.down"},
    )
    assert ast_text(site.donor) == "return x + self.down(self.act(self.up(x)))"


def test_several_statements_stand_for_one() -> None:
    reference = "def forward(self, x):\n    x = x + self.a(x)\n    return x + self.b(x)\n"
    port = "def run(self, x):\n    return x + self.a(x) + self.b(x)\n"
    site = site_of(reference, port)
    made = [site.code.splice([one.edit]) for one in list_candidates(site, ["run"])]
    assert made == [reference.replace("forward", "run")]
    one = site_of(reference, made[0].replace("self.b(x)", "self.a(x)"))
    assert not one.runs  # a statement for a statement is the row "reference"


MIXED = """
import paddle, torch

def double(x):
    return x * 2

def idle(x):
    return x * 4

class Torch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.b.weight = self.a.weight

    def forward(self, x):
        return self.b(double(self.a(x)))

def scale(x, by):
    return x * by

def same(x):
    return x

def apart(x):
    return paddle.tanh(x)

def twice(x):
    return scale(same(x), 3)

class Port(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.a, self.b = paddle.nn.Linear(4, 4), paddle.nn.Linear(4, 4)

    def forward(self, x):
        return self.b(twice(self.a(x)))

def torch_model():
    return Torch()

def paddle_model():
    return Port()

def inputs():
    return (torch.rand(3, 4).numpy(),)
"""


def test_what_the_place_calls_is_searched_with_it_and_no_helper_of_the_port_is_a_donor(
    tmp_path: Path,
) -> None:
    path = tmp_path / "pair_mixed.py"
    path.write_text(MIXED)
    with open_bench(path) as bench:
        report, ran = bench.judge_fully({}, tries_edits=False), bench.watch({})
        found = next(one for one in report.findings if one.stage == "forward")
        port, sources = bench.make_port(), Sources()
        scope = find_scope(found, bench.reference, port, report.pairs, sources, ran)
        blind = find_scope(found, bench.reference, port, report.pairs, sources)
    regions = {one.name: one for one in scope.regions}
    assert [regions[name].level for name in ("twice", "same", "Port.forward")] == [0, 0, 0]
    known = {one.function.name for region in blind.regions for one in region.donors}
    assert "double" in known and "apart" not in known
    donors = {one.function.name for one in regions["Port.forward"].donors}
    assert "double" in donors and not donors & {"idle", "twice", "scale"}
    tie = scope.ties[str(path), "Port.__init__"]
    assert tie == ("self.b.weight", "self.a.weight")  # though the finding is another one


def test_of_two_branches_the_one_that_runs_stands_for_the_references() -> None:
    """What a layer of a list takes is known by the variable of its loop; here it lacks `bias`."""
    reference = "def forward(self, x, mask, bias):\n    for layer in self.layers:\n"
    reference += "        x = layer(x, mask, bias, more=bias)\n    return x\n"
    port = "def run(self, x, mask, bias):\n    for layer in self.layers:\n        if self.spare:\n"
    port += "            x = spare(layer, x, mask, bias)\n        else:\n"
    port += "            x = layer(x, mask=mask)\n    return x\n"
    code = Code(port)
    takes = {"self.layers": ["x", "mask", "bias"]}
    region = Region("port.py", "run", [Donor(Code(reference).tree.body[0], {})])
    scope = Scope([], ("", 0), {}, [], lines={"port.py": {2, 3, 6, 7}}, takes=takes)
    sites = {one.statement.lineno: one for one in list_sites(scope, region, code)}
    assert ast_text(sites[6].donor) == "x = layer(x, mask, bias, more=bias)"
    tried = [one.after for one in list_candidates(sites[6], ["reference"])]
    assert "layer(x, mask=mask, bias=bias)" in tried
