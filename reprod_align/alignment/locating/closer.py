"""Moves the blame from a composite's own code to the one child that could not be paired as a module.

A recurrent layer stands in one model where the other has cells in a loop: their weights are
paired, they themselves are not, and all that is known is that the difference arises between them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from reprod_align.alignment.locating.fault import Fault
from reprod_align.alignment.pairing import Pairing
from reprod_align.base.naming import parent
from reprod_align.model.trace import Trace


def move_closer(fault: Fault, pairing: Pairing, reference: Trace) -> Fault:
    """Return the fault at the only unpaired child that shares its weights with unpaired ones there."""
    if not fault.own_code or fault.kind == "mask" or fault.stage != "forward":
        return fault
    called = {call.path for call in reference.calls if call.finished >= 0}
    ours = _find_unpaired(fault.place[0], pairing.torch.modules, pairing.modules) & called
    theirs = _find_unpaired(fault.place[1], pairing.paddle.modules, pairing.names)
    partners: dict[str, set[str]] = {}
    for pair in pairing.match.pairs:
        for child in {_find_holder(name, ours) for name in pair.torch} - {""}:
            partners.setdefault(child, set()).update(
                _find_holder(name, theirs) for name in pair.paddle
            )
    if len(partners) != 1:
        return fault
    ((child, others),) = partners.items()
    if "" in others:
        return fault
    where = fault.where.replace(
        "the value it hands", "the value made from its output and handed", 1
    )
    where += f"; its weights are those of {', '.join(sorted(others))} in Paddle"
    other = next(iter(others)) if len(others) == 1 else fault.place[1]
    return replace(fault, place=(child, other), where=where, own_code=False)


def _find_unpaired(path: str, modules: Iterable[str], paired: Mapping[str, str]) -> set[str]:
    """Return the modules without counterpart directly below `path`, or below a mere list of modules there."""
    found = set()
    for module in modules:
        above = parent(module)
        while above and above != path and above not in paired:
            above = parent(above)
        if module and module not in paired and above == path:
            found.add(module)
    return found


def _find_holder(tensor: str, modules: Iterable[str]) -> str:
    """Return the outermost of `modules` that holds the tensor, "" if none does."""
    return min((m for m in modules if tensor.startswith(f"{m}.")), key=len, default="")
