"""A format is recognised by its content; damage is one clear error."""

from importlib import import_module
from pathlib import Path

from reprod_align.curves import compare_curves, readers
from reprod_align.curves.log import CurveError, CurveLog
from reprod_align.curves.readers import Format, list_formats, read_curves
from reprod_align.errors import MissingInputError, ReprodError
from tests.curves.runs import lines_of, one

import numpy as np
import pytest

FORMATS = list_formats()


def test_a_killed_runs_last_line_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 1.0}\n{"step": 2, "loss": 0.9}\n{"step": 3, "lo')
    log = read_curves(path)
    assert log.curves["loss"].steps.tolist() == [1, 2]
    assert log.remarks == ("the last line (3) was cut off and is left out",)
    table = tmp_path / "log.csv"
    table.write_text("step,loss,lr\n1,0.5,1\n2,0.4,1\n3,0.")
    assert "the last line (4) was cut off" in read_curves(table).remarks[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"step": 1, "loss": 1}\n{"step": 2, "lo\n{"step": 3, "loss": 1}\n', "line 2 is damaged"),
        ('{"step": 1, "loss": 1}\n[1]\n{"step": 3, "loss": 1}\n', "got a list"),
        ('{"step": 1.5, "loss": 1}\n', "line 1: expected a step, a whole number, got '1.5'"),
        ('{"step": "x", "loss": 1}\n', "expected a step, a whole number, got 'x'"),
        ('{"step": 1e300, "loss": 1}\n', "step 100000000000000005250476 is too large"),
        ('{"loss": 1}\n', "has no step: it has loss"),
        ('{"step": 1, "note": "x"}\n', "holds no number"),
        ('{"log_history": []}', "its log_history is empty"),
        ('{"log_history": 3}', "expected a log_history, a list of JSON objects"),
        ('{\n  "log_history": [\n    {"step": 1,\n', "is damaged at line"),
        ("step,loss\n1,0.5\n2,abc\n", "line 3: column 'loss' holds numbers, got 'abc'"),
        ("step,loss\n1,0.5\n2\n3,0.4\n", "line 3 is damaged: fewer cells"),
        ("step,loss\n1,0.5,9\n", "line 2: 3 cells for 2 names"),
        ("step,loss,loss\n1,0.5,9\n", "a column name appears twice"),
        ("step,loss\n", "has no step"),
        ("hello world\n", "unknown log format; known: TensorBoard"),
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("[" * 5000, "unknown log format; known: TensorBoard"),
        ("{" * 5000, "damaged|cannot be read"),
    ],
)
def test_damage_is_one_clear_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "log"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CurveError, match=words) as error:
        read_curves(path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize("data", [bytes(range(256)) * 40, b"\0" * 64, b"PK\3\4\xff", b"\x93NUMPY"])
def test_binary_garbage_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(data)
    with pytest.raises(ReprodError) as error:
        read_curves(path)
    assert str(path) in str(error.value)


def test_missing_files_and_empty_folders(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="is missing"):
        read_curves(tmp_path / "none")
    with pytest.raises(CurveError, match="holds no run of a known format; known: TensorBoard"):
        read_curves(tmp_path)
    with pytest.raises(CurveError, match="device"):
        read_curves("/dev/null")


def test_a_large_log(tmp_path: Path) -> None:
    steps = np.arange(1, 100_001)
    values = 1 / np.sqrt(steps)
    path = lines_of(tmp_path / "log", steps.tolist(), values.tolist())
    report = compare_curves(path, {"loss": values + 1e-3 * (steps > 70_000)})
    assert one(report).first_step == 70_001


def test_a_new_format_is_one_more_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_pairs(path: Path) -> CurveLog | None:
        values = [float(word) for word in path.read_text().split()[1:]]
        return CurveLog.from_values({"loss": values}, str(path)) if values else None

    planted = Format(
        "losses", read_pairs, ("", ""), ("", ""), lambda head: head.text.startswith("LOSSES")
    )
    monkeypatch.setattr(readers, "list_formats", lambda: (planted, *FORMATS))
    path = tmp_path / "log"
    path.write_text("LOSSES 3 2 1")
    assert read_curves(path).curves["loss"].values.tolist() == [3, 2, 1]
    path.write_text("LOSSES")  # recognised, but not read: the other formats are tried
    with pytest.raises(CurveError, match="unknown log format; known: losses, TensorBoard"):
        read_curves(path)


def test_every_module_with_a_format_is_known() -> None:
    folder = Path(readers.__file__).parent
    with_one = [path for path in folder.glob("*.py") if ": Final = Format(" in path.read_text()]
    assert {"mlflow", "json", "text"} <= {path.stem for path in with_one}
    known = {Path(each.read.__code__.co_filename) for each in FORMATS}
    assert known == set(with_one)


def test_every_format_has_samples_which_the_fuzzer_damages() -> None:
    for path in {Path(each.read.__code__.co_filename) for each in FORMATS}:
        assert import_module(f"tests.curves.readers.test_{path.stem}").SAMPLES


def test_every_format_has_a_name_and_words_of_its_own() -> None:
    for told in (lambda each: each.name, lambda each: each.row, lambda each: each.row_cn):
        assert len({told(each) for each in FORMATS}) == len(FORMATS)
    assert all(all(each.row) and all(each.row_cn) for each in FORMATS)


def test_a_run_with_a_signature_goes_before_a_trainers_state(tmp_path: Path) -> None:
    """A Trainer's folder with what it logged for another tool: as a user looks at it there."""
    (tmp_path / "trainer_state.json").write_text('{"log_history": [{"step": 1, "loss": 1}]}')
    assert read_curves(tmp_path).kind == "a Trainer's log_history"
    (tmp_path / "run" / "metrics").mkdir(parents=True)
    (tmp_path / "run" / "meta.yaml").write_text("run_id: 1\n")
    (tmp_path / "run" / "metrics" / "loss").write_text("1795552039311 0.5 1\n")
    assert read_curves(tmp_path).kind == "an MLflow run"
