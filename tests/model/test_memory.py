"""What the system says of memory: of the machine, of a control group, and where it says nothing."""

from pathlib import Path

from reprod_align.model import store

import pytest


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_a_process_takes_memory_and_more_is_free() -> None:
    assert 0 < store.read_own() < store.read_own() + store.read_free()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory__max": "1000\n", "memory__current": "700\n"}, 300),
        ({"memory__max": "1000", "memory__current": "700", "memory__stat": "inactive_file 200\n"}, 500),
        ({"memory__max": "max\n", "memory__current": "700\n"}, 800),
        ({"memory__limit_in_bytes": "500", "memory__usage_in_bytes": "600"}, 0),
        ({}, 800),
    ],
)  # fmt: skip
def test_a_control_group_may_leave_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: int
) -> None:
    monkeypatch.setattr(store, "_GROUPS", tmp_path)
    monkeypatch.setattr(store, "_find_own_groups", lambda: ())
    monkeypatch.setattr(store, "_read_free_of_machine", lambda: 800)
    write(tmp_path, **files)
    assert store.read_free() == left


def test_freed_memory_is_kept_in_the_block_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []

    class C:
        def mallopt(self, *given: int) -> None:
            calls.append(given)

        def malloc_trim(self, *given: int) -> None:
            calls.append(given)

    monkeypatch.setattr(store, "_find_c", C)
    with store.reuse_freed():
        assert (store._TRIM_THRESHOLD, store._MOST) in calls
        calls.clear()
    assert calls == [(store._MMAP_THRESHOLD, 2**25), (store._TRIM_THRESHOLD, 2**26), (0,)]


@pytest.mark.parametrize("functions", [None, object()])
def test_another_allocator_stays_as_it_is(
    monkeypatch: pytest.MonkeyPatch, functions: object
) -> None:
    monkeypatch.setattr(store, "_find_c", lambda: functions)
    with store.reuse_freed():
        store.give_back_freed()
