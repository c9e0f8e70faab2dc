"""Tasks in copies of the process: in order, and a crash or a hang is an answer."""

import ctypes
import gc
import os
import time
from collections.abc import Iterator
from pathlib import Path

from reprod_align.explain.workers import FAILED, try_in_order

import pytest


def work(task: object) -> object:
    if task == "crash":
        ctypes.string_at(0)
    if task == "hang":
        while True:
            pass
    if task == "wait":
        time.sleep(60)
    if task == "exit":
        os._exit(3)
    if task == "grab":
        return len(bytearray(2**50))
    return task, os.getpid()


def answers(tasks: list[object], workers: int = 2) -> Iterator[object]:
    for number, answer in try_in_order(lambda: tasks, work, lambda: None, 0.5, workers):
        assert number == len(seen)
        seen.append(answer)
        yield answer


seen: list[object] = []


@pytest.fixture(autouse=True)
def forget() -> None:
    seen.clear()


def test_answers_come_in_order_from_other_processes() -> None:
    found = list(answers([*range(7)]))
    assert [task for task, _ in found] == [*range(7)]  # type: ignore[misc]
    pids = {pid for _, pid in found}  # type: ignore[misc]
    assert len(pids) == 2 and os.getpid() not in pids


@pytest.mark.parametrize("fault", ["crash", "exit", "hang", "wait", "grab"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_task_that_ends_its_process_fails_alone(
    fault: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reprod_align.explain.workers._IDLE", 4 if fault == "wait" else 100)
    found = list(answers(["a", fault, "b", "c", fault], workers))
    assert [one and one[0] for one in found] == ["a", FAILED, "b", "c", FAILED]  # type: ignore[index]


def test_a_copy_that_ends_once_is_made_again(tmp_path: Path) -> None:
    def work_once(task: int) -> int:
        if task == 2 and not (tmp_path / "ended").exists():
            (tmp_path / "ended").touch()
            ctypes.string_at(0)
        return task

    found = list(try_in_order(lambda: range(4), work_once, lambda: None, 5.0))
    assert found == [(0, 0), (1, 1), (2, 2), (3, 3)]


def test_time_that_is_up_is_given_once(tmp_path: Path) -> None:
    def work_in_vain(task: int) -> None:
        with (tmp_path / "begun").open("a") as begun:
            begun.write("x")
        work("hang")

    found = list(try_in_order(lambda: [0], work_in_vain, lambda: None, 0.5))
    assert found == [(0, FAILED)] and (tmp_path / "begun").read_text() == "x"


def test_a_copy_gets_memory_though_none_is_said_to_be_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprod_align.explain.workers.read_free", lambda: 0)
    found = list(
        try_in_order(lambda: [2**28], lambda size: len(bytearray(size)), lambda: None, 5.0)
    )
    assert found == [(0, 2**28)]


class Waiting:
    """Part of a circle: the collector finalizes it, which takes long where no thread answers."""

    def __init__(self) -> None:
        self.circle = self

    def __del__(self) -> None:
        if os.getpid() != PARENT:
            time.sleep(60)


PARENT = os.getpid()


def test_what_this_process_has_left_is_not_finalized_in_a_copy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reprod_align.explain.workers._IDLE", 4)
    gc.disable()
    try:
        Waiting()
        found = list(try_in_order(lambda: [0], lambda task: gc.collect() >= 0, lambda: None, 0.5))
    finally:
        gc.enable()
    assert found == [(0, True)]


def test_what_listing_the_tasks_raises_ends_it() -> None:
    def list_some() -> Iterator[int]:
        yield from (1, 2)
        raise TypeError("no body")

    found = try_in_order(list_some, work, lambda: None, 5.0, 2)
    assert [next(found)[0], next(found)[0]] == [0, 1]
    with pytest.raises(RuntimeError, match="TypeError: no body"):
        next(found)


def test_a_task_that_sleeps_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reprod_align.explain.workers._LOOK", 0.05)
    monkeypatch.setattr("reprod_align.explain.workers._ASLEEP", 10)
    began = time.monotonic()
    found = list(answers(["a", "wait", "b"]))  # else ten seconds
    assert [one and one[0] for one in found] == ["a", FAILED, "b"]  # type: ignore[index]
    assert time.monotonic() - began < 8


def test_whoever_stops_early_leaves_no_process_behind() -> None:
    running = answers(["a", *["hang"] * 4])
    _, process = next(running)  # type: ignore[misc]
    running.close()  # type: ignore[attr-defined]
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_no_task_is_no_answer() -> None:
    assert list(answers([])) == []
