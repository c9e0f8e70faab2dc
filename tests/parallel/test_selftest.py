"""Faults that are planted on the ranks of a port are revealed, at the place where they are planted."""

from pathlib import Path

from reprod_align.commands import selftest
from reprod_align.parallel import selftest as planting
from reprod_align.selftest import NO_EFFECT, SelfTest
from tests.commands.asked import run
from tests.parallel.cases import FAITHFUL, MODELS, Case

import pytest

_SAMPLE = ["one rank's layer scaled", "gradient missing on a rank", "loss of one rank apart"]


def check(result: SelfTest) -> None:
    assert result.passed, result.summary()
    for one in result.planted:
        assert one.module.rpartition(".")[0] in one.text, one


def test_a_sample_is_revealed_where_it_is_planted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(planting, "list_rank_faults", lambda axes: _SAMPLE)
    path = Case("mlp", "plain", "tp=2").write(tmp_path)
    result = planting.selftest_parallel(path, "tp=2", time_limit=120)
    check(result)
    assert [one.kind for one in result.outcomes] == _SAMPLE
    monkeypatch.setattr(planting, "selftest_parallel", lambda *given: result)
    assert run(selftest, path, "--parallel", "tp=2") == 0
    assert capsys.readouterr().out.endswith("3 of 3 planted faults revealed\n")


def test_nothing_is_planted_in_a_port_that_differs(tmp_path: Path) -> None:
    path = Case("mlp", "row-scaled", "tp=2", "row-scaled").write(tmp_path)
    result = planting.selftest_parallel(path, "tp=2", time_limit=120)
    assert not result.passed and not result.outcomes
    assert "so nothing was planted" in result.summary()


@pytest.mark.longer
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["plain", "replicas", "sequence", "both"])
def test_every_fault(model: str, name: str, tmp_path: Path) -> None:
    mesh, options = FAITHFUL[name]
    path = Case(model, name, mesh, "", options).write(tmp_path)
    result = planting.selftest_parallel(path, mesh, time_limit=120)
    check(result)
    if name == "sequence":
        idle = [one.text for one in result.outcomes if one.without_effect]
        assert idle == [NO_EFFECT]  # all its masks are of parts
