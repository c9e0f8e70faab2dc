"""What the judge and the ranks say to each other: plain data and arrays."""

from dataclasses import dataclass
from typing import Any, Final

ADDRESS: Final = "REPROD_ALIGN_RANKS"
LIFELINE: Final = "REPROD_ALIGN_LIFELINE"
KEY: Final = "REPROD_ALIGN_KEY"
MESH: Final = "REPROD_ALIGN_MESH"
"""the environment of a rank: where it connects, and what run it belongs to"""


@dataclass(frozen=True)
class Asked:
    """What a rank asks as its model runs."""

    topic: str
    """"inputs" or "outputs": what to pin at a call; "objective": what the outputs weigh"""
    path: str
    index: int
    parent: int | None
    leaves: dict[str, tuple[Any, bool]]
    """by path: the array that this rank holds, and whether a gradient can flow through it"""


@dataclass(frozen=True)
class Opened:
    """What a rank says of the port that it has made."""

    name: str
    functions: frozenset[str]
    """those that the file defines for this side: "loss", "optimizer", "scheduler" """
    shards: dict[str, tuple[int | None, str]]
    """by name: the axis that is cut among the ranks of tp, None for none; and the kind of layer"""
    borders: dict[str, tuple[int | None, int | None]]
    """by path of the engine's layers: the axis along which they take, and give, a part"""
    planted: str = ""
    """where the fault that was asked for is: a layer or parameter, "" for the model or its training"""
    no_place: str = ""
    """why the fault that was asked for has no place in the port"""
