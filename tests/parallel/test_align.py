"""Ports on several ranks: faithful settings are not flagged, planted faults are caught and named."""

import os
from collections.abc import Iterator
from pathlib import Path

from reprod_align.errors import ReprodError
from reprod_align.parallel import parse_mesh
from reprod_align.parallel.align import align_parallel
from reprod_align.parallel.launch import RankFailure, Ranks
from reprod_align.report import Report
from tests.parallel.cases import CASES, Case

import pytest

_SAMPLE = ("faithful-padded", "identity-twice", "shard-order")


def check(case: Case, report: Report) -> None:
    assert report.passed == (not case.fault)
    if case.fault:
        first = report.findings[:2]
        told = " ".join(f"{f.place} {' '.join(f.places)} {f.code} {f.message}" for f in first)
        assert any(part in told for part in case.culprits)


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    with Ranks(parse_mesh("tp=2"), time_limit=120) as started:
        yield started


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_sample(name: str, ranks: Ranks, tmp_path: Path) -> None:
    case = next(case for case in CASES if (case.model, case.name) == ("decoder", name))
    check(case, align_parallel(case.write(tmp_path), case.mesh, ranks=ranks))


def test_a_file_that_raises_and_a_rank_that_dies(ranks: Ranks, tmp_path: Path) -> None:
    """The last of these ends the ranks."""
    case = next(case for case in CASES if case.name == "faithful-plain")
    path = case.write(tmp_path)
    text = path.read_text()
    path.write_text(
        text.replace("    model = Model()\n    last", "    raise KeyError('planted')\n    last")
    )
    with pytest.raises(ReprodError, match="planted"):
        align_parallel(path, "tp=2", ranks=ranks)
    dying = "    import os\n    part == 1 and os._exit(9)\n    model = Model()\n    last"
    path.write_text(text.replace("    model = Model()\n    last", dying))
    with pytest.raises(RankFailure, match=r"rank \d of 2 ended.*log: .*workerlog"):
        align_parallel(path, "tp=2", ranks=ranks)
    with pytest.raises(RankFailure):
        ranks.ask("describe")


@pytest.mark.longer
def test_a_rank_that_hangs_is_named_and_none_outlives_the_run(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.name == "faithful-plain")
    path = case.write(tmp_path)
    hanging = "    import time\n    part == 1 and time.sleep(600)\n    model = Model()\n    last"
    path.write_text(path.read_text().replace("    model = Model()\n    last", hanging))
    with Ranks(parse_mesh("tp=2"), time_limit=40, logs=tmp_path / "logs") as started:
        pids = [*started._pids.values()]
        started._limit = 5
        with pytest.raises(RankFailure, match=r"rank 1 of 2 has not answered for 5 s"):
            align_parallel(path, "tp=2", ranks=started)
    for pid in pids:
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().split()[2] == "Z"


def test_an_interpreter_without_paddle_is_one_line(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho planted >&2; exit 7\n")
    os.chmod(python, 0o755)
    with pytest.raises(RankFailure, match="rank 0 of 2 cannot be started: planted"):
        Ranks(parse_mesh("tp=2"), str(python), logs=tmp_path / "logs").__enter__()


@pytest.mark.longer
@pytest.mark.parametrize("mesh", sorted({case.mesh for case in CASES}))
def test_all_cases(mesh: str, tmp_path: Path) -> None:
    with Ranks(parse_mesh(mesh), time_limit=120) as started:
        for case in (case for case in CASES if case.mesh == mesh):
            check(case, align_parallel(case.write(tmp_path), mesh, ranks=started))
