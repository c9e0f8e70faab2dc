"""The verdict on two initialisations, as text and JSON."""

import json

from reprod_align.initialisation import InitialisationReport, ParameterResult
from reprod_align.initialisation.sample import Moments

ZEROS = Moments(0, 0.0, 0.0, 0.0)
CONSTANT = ParameterResult(
    "b", "b", (4,), (4,), ZEROS, ZEROS, {}, None, 0.0, (), ("zeros", "zeros"), ""
)
DRAWN = ParameterResult(
    torch_name="w",
    paddle_name="w",
    torch_shape=(4, 3),
    paddle_shape=(3, 4),
    torch=Moments(96, 0.0, 0.02, 3.0),
    paddle=Moments(96, 0.0, 0.04, 3.0),
    p_values={"mean": 0.5, "spread": 1e-9},
    std_ratio=(2.0, 1.5, 2.5),
    seen=0.25,
    problems=("spread differs, p 1.0e-09",),
    words=("normal, std 0.02", "normal, std 0.04"),
    remedy="weight_attr=...",
)


def test_a_difference_is_shown_with_its_remedy() -> None:
    report = InitialisationReport((CONSTANT, DRAWN), 1e-3)
    lines = report.text().splitlines()
    assert lines[1].split() == ["b", "4", "4", "zeros", "zeros", "ok"]
    assert lines[2].split()[-3:] == ["1e-09", "25%", "DIFFERENT"] and lines[2].split()[1:3] == [
        "4x3",
        "3x4",
    ]
    assert lines[4:8] == [
        "  w: spread differs, p 1.0e-09",
        "    normal, std 0.04 in Paddle, normal, std 0.02 in PyTorch",
        "    std in Paddle 2 times PyTorch's, between 1.5 and 2.5",
        "    set weight_attr=...",
    ]
    assert lines[-1] == "initialisation: DIFFERENT: 1 of 2 parameters (family-wise level 0.001)"
    found = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert not found["passed"] and [each["passed"] for each in found["parameters"]] == [True, False]


def test_constants_alone() -> None:
    headline = InitialisationReport((CONSTANT,), 1e-3).headline
    assert headline == "initialisation: all 1 parameters are constant and equal"
