"""Pieces judged by workers give the report that they give here, whoever is stopped on the way."""

import os
from collections import OrderedDict
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from reprod_align import Report, ReprodError, align_sections
from reprod_align.base.tasks import ResultFolder
from reprod_align.commands import main
from reprod_align.sections import pieces, stream
from reprod_align.sections.pieces import Job, Request, SectionWork
from reprod_align.sections.stream import build, spell
from tests.sections import fatal
from tests.sections.small import IDS, LIMIT, TorchNet, judge_in_sections, write_weights

import pytest
import torch

PIECES = 5


def judge(folder: Path, make_port: Any, **options: Any) -> Report:
    path = write_weights(folder)
    return align_sections(TorchNet, make_port, IDS, path, section_size=LIMIT, **options)


def list_results(state: Path) -> dict[str, int]:
    """Return when each piece's result was written."""
    reports = [path for path in state.glob("*.json") if "verdict" in path.read_text()]
    return {path.name: path.stat().st_mtime_ns for path in reports}


def test_workers_that_end_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    state, flag = tmp_path / "state", tmp_path / "ended"
    monkeypatch.setenv(fatal.FLAG, str(flag))
    monkeypatch.setenv(fatal.COMMAND, str(os.getpid()))
    report = judge(tmp_path, fatal.make_wrong, jobs=2, state=state)
    assert flag.exists(), "a worker was ended in the middle of a piece"
    assert str(report) == str(judge(tmp_path, fatal.make_wrong))
    assert len(list_results(state)) == PIECES
    # another run, in this process, finds everything
    monkeypatch.setattr(pieces, "judge_piece", None)
    monkeypatch.setattr(pieces, "run_side", None)
    monkeypatch.setattr(pieces, "add_gradients", None)
    assert str(judge(tmp_path, fatal.make_wrong, state=state)) == str(report)


def test_workers_go_on_where_this_process_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    state, real = tmp_path / "state", pieces.judge_piece

    def stop(pair: Any, runs: Any, piece: Any, **options: Any) -> Report:
        if piece.name == "layers.1":
            raise KeyboardInterrupt
        return real(pair, runs, piece, **options)

    monkeypatch.setattr(pieces, "judge_piece", stop)
    with pytest.raises(KeyboardInterrupt):
        judge(tmp_path, fatal.make_wrong, state=state)
    before = list_results(state)
    assert len(before) == 2
    report = judge(tmp_path, fatal.make_wrong, state=state, jobs=2)
    assert report.findings[0].place == "layers.1"
    after = list_results(state)
    assert len(after) == PIECES and before.items() <= after.items(), "none was judged twice"


FILE = """
from tests.sections.fatal import {name} as paddle_model
from tests.sections.small import IDS as inputs, TorchNet as torch_model

torch_weights = "model.safetensors"
torch_los = None
"""


def test_the_command_judges_a_file_in_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    write_weights(tmp_path)
    (tmp_path / "mine.py").write_text(FILE.format(name="make_wrong").replace("torch_los", "x"))
    words = ["pair", str(tmp_path / "mine.py"), "--sections", str(LIMIT)]
    assert main([*words, "--jobs", "2"]) == 1
    apart = capsys.readouterr().out
    assert main(words) == 1
    assert apart == capsys.readouterr().out
    assert "layers.1" in apart


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--jobs", "2"], "--jobs and --cluster go with --sections"),
        (["--sections", "--cluster", "tcp://127.0.0.1:1"], "cluster needs state: a folder that"),
        (["--sections", "--jobs", "0"], "jobs: expected a whole number above 0, got 0"),
        (["--sections", "--state", "mine.py"], "mine.py is not a folder: results are kept in one"),
    ],
)
def test_what_workers_lack_is_one_line(
    tmp_path: Path,
    options: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    write_weights(tmp_path)
    (tmp_path / "mine.py").write_text(FILE.format(name="FatalNet").replace("torch_los", "x"))
    assert main(["pair", "mine.py", *options]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line


def test_damaged_runs_are_made_anew(tmp_path: Path) -> None:
    state = tmp_path / "state"
    report = judge_in_sections(tmp_path, "code", state=state)
    kept = list(state.glob("*.safetensors"))
    assert len(kept) == 3, "both models forward, and PyTorch's backward"
    for path in kept:
        path.write_bytes(path.read_bytes()[:-8])
    assert str(judge_in_sections(tmp_path, "code", state=state)) == str(report)


# ---------------------------------------------------------------------- what sections return


class Both(NamedTuple):
    first: Any
    second: Any


@dataclass
class Output:
    value: Any
    extra: Any = None


def is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


ONE = torch.zeros(())


@pytest.mark.parametrize(
    "value",
    [
        ONE, None, 3, (ONE, [None, 2.5]), {"a": ONE, "b": "text"}, Both(ONE, (ONE,)),
        Output({"x": ONE}), OrderedDict(a=(ONE, True)),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_section_returns_comes_back(value: Any) -> None:
    made = build(spell(value, is_tensor), ONE)
    assert type(made) is type(value) and made == value


def test_a_model_output_comes_back() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    value = outputs.BaseModelOutput(last_hidden_state=ONE, hidden_states=(ONE, ONE))
    made = build(spell(value, is_tensor), ONE)
    assert type(made) is type(value) and list(made) == list(value)
    assert made.hidden_states == (ONE, ONE)


def test_what_is_no_container_is_neither_written_nor_made() -> None:
    class Local:
        pass

    for value in (Local(), object(), {3: ONE}, print):
        with pytest.raises(TypeError):
            spell(value, is_tensor)
    for kind in ("os:system", "subprocess:Popen", "not_imported:Class", "builtins:eval"):
        with pytest.raises(TypeError, match=kind):
            build({"class": kind, "parts": [["", {"value": "true"}]]}, ONE)


def test_a_section_that_returns_more_is_judged_here_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(value: object, is_tensor: object) -> None:
        raise TypeError("a value of mine:Cache")

    monkeypatch.setattr(stream, "spell", refuse)
    state = tmp_path / "state"
    assert judge_in_sections(tmp_path, state=state).passed
    assert len(list_results(state)) == PIECES and not list(state.glob("*.safetensors"))
    opened = Request(TorchNet, fatal.FatalNet, IDS, write_weights(tmp_path)).open()
    of_a_worker = SectionWork(opened, ResultFolder(state), "key", apart=True)
    with pytest.raises(
        ReprodError, match="a section returns a value of mine:Cache, which cannot be"
    ):
        of_a_worker.find_run(pieces.REFERENCE)


def test_a_worker_refuses_what_the_command_did_not_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_request = partial(
        nullcontext, Request(TorchNet, fatal.FatalNet, IDS, write_weights(tmp_path))
    )
    made_from = open_request().enter_result.open().made_from
    monkeypatch.setattr(pieces, "_opened", [])
    for other, words in ((made_from + "x", "finds other models"), (made_from, "does not see")):
        job = Job(open_request, tmp_path, other, f"key of {words}")
        with pytest.raises(ReprodError, match=rf"^the worker on .* {words}"):
            pieces.judge_apart(job, False, "embed")
