"""Holds a certificate against a proof made again from its seed."""

from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any

from reprod_align.base.json import read_json
from reprod_align.contract.proof import FORMAT, Proof
from reprod_align.contract.refusal import Refusal
from reprod_align.errors import ReprodError

_NEAR = 1e-6  # relative: losses on another processor


def read_certificate(path: Path) -> dict[str, Any]:
    """Return a certificate. Raises ReprodError where the file is none."""
    made = read_json(path)
    if (
        not isinstance(made, dict)
        or made.get("format") != FORMAT
        or type(made.get("seed")) is not int
    ):
        raise ReprodError(f"{path}: expected a certificate of prove, with its format and seed")
    if not 0 <= made["seed"] < 2**63:
        raise ReprodError(f"{path}: the seed must lie between 0 and 2**63")
    return made


def hold_against(certificate: Mapping[str, Any], proof: Proof) -> list[Refusal]:
    """Return where a certificate says something else than the proof made again."""
    return [Refusal("certificate-differs", text) for text in _list_differences(certificate, proof)]


def _list_differences(said: Mapping[str, Any], proof: Proof) -> Iterator[str]:
    now = proof.describe()
    for name in ("name", "contract", "reference", "port", "verdict", "known", "tokens"):
        if said.get(name) != now[name]:
            yield f"{name}: it says {str(said.get(name))[:80]}, the proof {str(now[name])[:80]}"
    stages = [(one.name, one.passed) for one in proof.stages]
    given = said.get("stages")
    claimed = [(one.get("name"), one.get("passed")) for one in given if isinstance(one, dict)] \
        if isinstance(given, list) else []  # fmt: skip
    if claimed != stages:
        yield "stages: it has others, or with other verdicts"
    losses = said.get("losses")
    if not isinstance(losses, list) or not _are_near(losses, list(proof.losses)):
        yield "losses: it has others than the proof"


def _are_near(one: list[Any], other: list[float]) -> bool:
    return len(one) == len(other) and all(
        isinstance(a, (int, float)) and isclose(a, b, rel_tol=_NEAR, abs_tol=1e-12)
        for a, b in zip(one, other, strict=True)
    )
