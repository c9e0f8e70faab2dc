"""A framework that is too old is named before it is imported."""

from reprod_align.backends import versions
from reprod_align.backends.versions import require
from reprod_align.errors import ReprodError

import pytest


def pretend(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str]) -> None:
    monkeypatch.setattr(versions, "find_version", lambda name: installed.get(name, ""))


@pytest.mark.parametrize(
    ("installed", "package", "message"),
    [
        ({"torch": "2.1.2+cpu"}, "torch", "reprod-align needs torch >= 2.2, found 2.1.2+cpu"),
        ({"paddlepaddle": "2.5.2"}, "paddlepaddle",
         "reprod-align needs paddlepaddle >= 2.6, found 2.5.2"),
        ({"paddlepaddle-gpu": "2.4.0.post117"}, "paddlepaddle",
         "reprod-align needs paddlepaddle-gpu >= 2.6, found 2.4.0.post117"),
    ],
)  # fmt: skip
def test_one_that_is_too_old_is_named(
    installed: dict[str, str], package: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, installed)
    with pytest.raises(ReprodError) as error:
        require(package)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "installed", [{}, {"torch": "2.2.0"}, {"torch": "2.15.0"}, {"torch": "3.0"}, {"torch": "0.0.0"}]
)
def test_others_pass(installed: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, installed)
    require("torch")
