"""What the system says of memory: of the machine, of a control group, and where it says nothing."""

from pathlib import Path

from reprod_align.model.store import memory

import pytest


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_a_process_takes_memory_and_more_is_free() -> None:
    assert 0 < memory.read_own() < memory.read_own() + memory.read_free()


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory__max": "1000\n", "memory__current": "700\n"}, 300),
        ({"memory__max": "1000", "memory__current": "700", "memory__stat": "inactive_file 200\n"}, 500),
        ({"memory__max": "max\n", "memory__current": "700\n"}, None),
        ({"memory__limit_in_bytes": "500", "memory__usage_in_bytes": "600"}, 0),
        ({}, None),
    ],
)  # fmt: skip
def test_a_control_group_may_leave_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: int | None
) -> None:
    monkeypatch.setattr(memory, "_GROUPS", tmp_path)
    monkeypatch.setattr(memory, "_find_own_groups", lambda: ())
    write(tmp_path, **files)
    whole = memory._read_free_of_machine()
    assert memory.read_free() <= whole if left is None else memory.read_free() == left
