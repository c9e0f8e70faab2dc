"""The quick look turns down what changes nothing at the fault, and lets pass what mends it."""

from pathlib import Path

from reprod_align.mending.probe import make_probe
from tests.mending.pairs import open_bench, write_pair


def test_an_edit_that_mends_passes_and_one_that_does_not_is_turned_down(tmp_path: Path) -> None:
    path = write_pair(tmp_path, "an axis")
    with open_bench(path) as bench:
        before = bench.files.read(str(path), {})
        (fault,) = bench.judge({}).faults
        probe = make_probe(bench, {}, fault)
        assert probe is not None and probe.known
        assert probe.may_mend({str(path): before.replace("axis=-2", "axis=-1")})
        assert not probe.may_mend({str(path): before})
        assert not probe.may_mend({str(path): before.replace("axis=-2", "axis=9")})  # it raises
        assert make_probe(bench, {}, ("loss", "the model", "")) is None
