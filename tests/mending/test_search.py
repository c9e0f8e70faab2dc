"""The search: candidates near the finding first, each text once, and the edit that mends."""

from pathlib import Path

from reprod_align.explain.scope import Sources, find_scope
from reprod_align.explain.trials import list_trials
from reprod_align.mending.search import find_edit
from tests.mending.pairs import FAULTS, open_bench, write_pair


def test_the_edit_is_found_and_what_is_left_is_told(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        report, before = bench.judge_fully({}), bench.judge({})
        fault = next(iter(before.faults))
        port = bench.make_port()
        scope = find_scope(report.findings[0], bench.reference, port, report.pairs, Sources())
        trials = list(list_trials(bench.files, scope, {}))
        assert trials[0].candidate.line == scope.place[1]
        found = find_edit(bench, {}, scope, fault, before, [])
        assert found is not None
        after = bench.files.apply({}, found[0])[str(path)]
    assert found[1].passed
    right, wrong = FAULTS["an axis"]
    assert after == path.read_text().replace(wrong, right)
