"""The table of calls: rows as they are read, and the entries' conventions say the same of layers."""

import ast

from reprod_align.api import conventions
from reprod_align.api.calls import LAYERS, find_rows, parse_rows

import pytest

TRIED = (False, True, 0.25, 3, "tanh")
"""values of a setting"""


def test_a_line_is_read_as_it_stands() -> None:
    text = "torch.max#(a, *b, c=1) := paddle.max#D([*b], axis=c)"
    one, two, three = parse_rows(text)
    assert (one.name, one.arguments, one.defaults) == ("torch.max1", ("a", "b", "c"), {"c": "1"})
    assert (two.star, two.is_first) == (1, True)
    assert str(three) == "torch.max3(a, *b, c=1) = paddle.max3D([*b], axis=c)"
    assert not next(parse_rows("torch.eq(input, other) = input == other")).is_first


def test_rows_are_found_by_the_last_parts_of_a_name() -> None:
    assert find_rows("torch.float") == ["torch.float = paddle.float32"]
    assert (
        find_rows("nn.Mish")
        == find_rows("torch.nn.Mish")
        == ["torch.nn.Mish(inplace) = paddle.nn.Mish()"]
    )
    assert find_rows("Mi") == []


def list_settings() -> list[tuple[str, str, str, str]]:
    """Return kind, PyTorch's setting, Paddle's argument and its value in it, of every layer's row."""
    found = []
    for row in parse_rows(LAYERS):
        call = ast.parse(row.target, mode="eval").body
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            names = {one.id for one in ast.walk(keyword.value) if isinstance(one, ast.Name)}
            (*_, setting) = names & set(row.arguments) or {""}
            kind = row.name.rpartition(".")[2]
            if len(names) == 1 and setting:
                found.append((kind, setting, keyword.arg or "", ast.unparse(keyword.value)))
    return found


@pytest.mark.parametrize(("kind", "setting", "argument", "value"), list_settings())
def test_rows_and_conventions_agree(kind: str, setting: str, argument: str, value: str) -> None:
    known = conventions()
    convention, _ = known.get((kind, setting), known.get(("", setting), (None, "")))
    if convention is None or not convention.argument:
        return
    both = ["weight_attr", "bias_attr"] if setting == "affine" else []
    assert argument in (*convention.argument.split("="), *both, setting)
    if convention.from_torch is None or argument == setting != convention.argument:
        assert value == setting
        return
    for given in TRIED:
        try:
            expected = convention.from_torch(given)
        except TypeError:
            continue
        assert eval(value, {setting: given, "kernel_size": 3}) == expected
