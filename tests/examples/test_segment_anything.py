"""The port of Segment Anything that is kept in examples/ is still faithful, and a fault in it is seen."""

import shutil
from pathlib import Path

from reprod_align.porting.attempt import attempt

KEPT = Path(__file__).parents[2] / "examples" / "segment_anything" / "port"


def test_the_kept_port_is_faithful_and_a_planted_fault_is_not(tmp_path: Path) -> None:
    report = attempt(KEPT, "small_paddle")
    assert report.verdict == "faithful"
    assert any("gradients, train mode" in one.what and one.relative > 0 for one in report.checks)
    folder = tmp_path / "port"
    shutil.copytree(KEPT, folder)
    file = folder / "small_paddle.py"
    text = file.read_text(encoding="utf-8")
    assert text.count("boxes = boxes + 0.5") == 1
    file.write_text(text.replace("boxes = boxes + 0.5", "boxes = boxes + 0.51"), encoding="utf-8")
    faulty = attempt(folder, "small_paddle")
    assert faulty.verdict == "diverges" and faulty.findings[0].stage == "forward"
