"""Tasks run here or in workers of dask, and no result is lost or made twice, whoever ends."""

import importlib
import os
import pickle
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reprod_align.base import room, tasks
from reprod_align.base.console import run_command
from reprod_align.base.tasks import ResultFolder, Workers, digest
from reprod_align.errors import ReprodError
from tests.base.steps import count_notes, end_scheduler, note, square

import pytest


def run_all(workers: Workers, folder: Path, *given: str) -> dict[str, int]:
    """Run the tasks in two turns, which one process after the other would do as well."""
    with workers.at_work(partial(note, folder, "prepares")) as run:
        first = dict(run(partial(square, folder), given[:-1]))
        return first | dict(run(partial(square, folder), given[-1:]))


def test_without_workers_tasks_run_here_in_order(tmp_path: Path) -> None:
    assert list(run_all(Workers(), tmp_path, "2", "1", "3").items()) == [
        ("2", 4),
        ("1", 1),
        ("3", 9),
    ]
    assert run_all(Workers(), tmp_path, "2", "4") == {"2": 4, "4": 16}
    assert count_notes(tmp_path, "prepares") == 0
    assert count_notes(tmp_path, "judges 2") == 1, "the second run finds the result"


def test_no_result_is_lost_or_made_twice_where_workers_end(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    given = ["1", "2 dies", "3 dies after", "4", "5 ends its worker", "6"]
    found = run_all(Workers(2), tmp_path, *given)
    assert found == {task: int(task[0]) ** 2 for task in given}
    assert [count_notes(tmp_path, f"judges {task[0]}") for task in given] == [1] * 6
    assert count_notes(tmp_path, "begins 3") >= 2, "the engine ran it again"
    # a run that goes on, in this process, judges nothing
    assert run_all(Workers(), tmp_path, "1", "7") == {"1": 1, "7": 49}
    assert count_notes(tmp_path, "judges 1") == 1


def test_a_task_that_ends_every_worker_is_named(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(
        ReprodError, match="^3 dies always: 4 workers ended while at it: the system"
    ):
        run_all(Workers(2), tmp_path, "3 dies always")
    assert count_notes(tmp_path, "begins 3") == 4


def test_a_process_serves_a_command_from_its_first_task_to_its_last(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    run_all(Workers(2), tmp_path, "1", "2", "3", "4")
    assert count_notes(tmp_path, "prepares") == 2
    assert len(set(re.findall("process .*", (tmp_path / "notes").read_text()))) <= 2


def test_what_a_task_raises_is_raised_here(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    with pytest.raises(ReprodError, match="^3 is not judged$"):
        run_all(Workers(2), tmp_path, "3 raises")


@contextmanager
def cluster() -> Iterator[tuple[str, int]]:
    """Yield the address of a scheduler with one worker, as `dask scheduler` starts it, and its process."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address, quiet = f"tcp://127.0.0.1:{port}", ["--no-dashboard"]
    commands = [
        ["scheduler", "--host", "127.0.0.1", "--port", str(port), *quiet],
        ["worker", address, "--nthreads", "1", "--no-nanny", *quiet],
    ]
    started = [
        subprocess.Popen([sys.executable, "-m", "dask", *words], stderr=subprocess.DEVNULL)
        for words in commands
    ]
    try:
        yield address, started[0].pid
    finally:
        for process in started:
            process.kill()
            process.wait()


def test_a_running_cluster_is_used_and_a_scheduler_that_is_gone_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    with cluster() as (address, scheduler):
        assert run_all(Workers(cluster=address), tmp_path, "1", "2") == {"1": 1, "2": 4}

        def work() -> None:
            with Workers(cluster=address).at_work() as run:
                list(run(partial(end_scheduler, scheduler), ["end"]))

        assert run_command("mine", work) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == (
        f"mine: the scheduler {address} is gone: what was finished is kept, start the command again"
    )


def test_a_scheduler_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(tasks, "_PATIENCE", "1s")
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(ReprodError, match=f"^no scheduler answers at {address}: "):
            with Workers(cluster=address).at_work():
                pass


def test_what_workers_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReprodError, match="jobs: expected a whole number above 0, got 0"):
        Workers(0)
    with pytest.raises(ReprodError, match="give one"):
        Workers(2, "tcp://there:8786")
    monkeypatch.setattr(tasks, "find_spec", lambda name: None)
    assert not Workers(1).are_apart
    for given, words in (
        (Workers, "--jobs 2"),
        (partial(Workers, cluster="tcp://x:1"), "--cluster"),
    ):
        with pytest.raises(
            ReprodError, match=rf"{words}.* needs the package distributed: .*\[cluster\]"
        ):
            given(*([2] if given is Workers else []))


def test_results_are_whole_files_of_a_folder(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "made")
    assert folder.find("a") is None
    folder.keep("a", {"verdict": "faithful"})
    assert folder.find("a") == {"verdict": "faithful"}
    path = folder.path("a")
    assert path is not None
    path.write_text(path.read_text()[:-3])
    assert folder.find("a") is None, "a damaged file is no result"
    with pytest.raises(ReprodError, match="is not a folder"):
        ResultFolder(path)
    nothing = ResultFolder(None)
    nothing.keep("a", 1)
    assert nothing.find("a") is None


def test_a_digest_tells_where_a_text_ends() -> None:
    assert digest("a", "b") == digest(b"a", "b") != digest("ab", "")


def run_answer(judge: str, work: object, given: object) -> tuple[bool, Any]:
    answer: tuple[bool, Any] = pickle.loads(room.answer(pickle.dumps((judge, work, given))))
    return answer


class Unpicklable(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def fail(task: str) -> None:
    raise Unpicklable(task, "fails")


def test_a_worker_with_other_code_refuses() -> None:
    failed, error = run_answer("another", print, "task")
    assert failed and "has other sources of reprod_align, or other versions" in str(error)
    assert run_answer(room.digest_judge(), str.upper, "a") == (False, "A")
    failed, error = run_answer(room.digest_judge(), fail, "it")
    assert failed and "it fails" in str(error)


def test_a_command_finds_files_as_they_are_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker lives longer than a command: another imports what has changed since."""
    monkeypatch.setattr(room, "_rooms", {})
    monkeypatch.syspath_prepend(tmp_path)
    task = pickle.dumps((room.digest_judge(), read_value, "module_of_a_worker"))
    for command, value in enumerate((1, 2)):
        (tmp_path / "module_of_a_worker.py").write_text(f"value = {value}\n" + "#" * value)
        for _ in range(2):
            assert pickle.loads(room.run_in_room(str(command), task)) == (False, value)
        assert len(room._rooms) == 1
    room.close_room("another")
    assert room._rooms
    room.close_room("1")
    assert not room._rooms


def read_value(module: str) -> Any:
    return importlib.import_module(module).value


def test_a_worker_outlives_a_command_that_ends_in_mid_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_rooms", {})
    os.mkfifo(tmp_path / "begun")
    task = pickle.dumps((room.digest_judge(), wait, tmp_path / "begun"))
    raised: list[BaseException] = []

    def work() -> None:
        try:
            room.run_in_room("a", task)
        except (EOFError, OSError) as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    (tmp_path / "begun").read_text()  # until the task has begun
    room.close_room("a")
    thread.join()
    assert len(raised) == 1


def wait(begun: Path) -> None:
    begun.write_text("")
    threading.Event().wait()
