"""Sources of the tests' own, ported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from reprod_align.porting.port import PortResult, port
from reprod_align.porting.source import Source, name_port
from tests.porting import drafts

import pytest


class WriteSource(Protocol):
    """Writes a file, or the files of a package whose model is in net.py."""

    def __call__(self, text: str | Mapping[str, str], call: str = "Net()") -> Source: ...


class PortSource(Protocol):
    """Writes a source and ports it; gives the result and the port's text."""

    def __call__(
        self, text: str | Mapping[str, str], inputs: object, call: str = "Net()"
    ) -> tuple[PortResult, str]: ...


@pytest.fixture
def write_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteSource:
    """Return what writes sources to the test's folder, which is imported from until the test ends."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text: str | Mapping[str, str], call: str = "Net()") -> Source:
        return drafts.write_source(tmp_path, text, call)

    return write


@pytest.fixture
def port_source(tmp_path: Path, write_source: WriteSource) -> PortSource:
    """Return what ports a source to the folder `out`."""

    def run(
        text: str | Mapping[str, str], inputs: object, call: str = "Net()"
    ) -> tuple[PortResult, str]:
        source = write_source(text, call)
        result = port(source, inputs, tmp_path / "out")
        return result, (tmp_path / "out" / f"{name_port(source)}.py").read_text()

    return run
