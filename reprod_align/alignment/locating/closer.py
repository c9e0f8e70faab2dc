"""Moves the blame from a composite's own code to the one child that could not be paired as a module.

A recurrent layer stands in one model where the other has cells in a loop: their weights are
paired, they themselves are not, and all that is known is that the difference arises between them.
"""

from dataclasses import replace

from reprod_align.alignment.locating.locate import Fault
from reprod_align.alignment.pairing import Pairing
from reprod_align.base.naming import parent
from reprod_align.model.trace import Trace


def moved_closer(fault: Fault, pairing: Pairing, reference: Trace) -> Fault:
    """Return the fault at the only unpaired child that shares its weights with unpaired ones there."""
    if not fault.own_code or fault.made_with or fault.stage != "forward":
        return fault
    called = {call.path for call in reference.calls if call.finished >= 0}
    ours = _unpaired(fault.torch_path, set(pairing.torch.modules), set(pairing.modules)) & called
    theirs = _unpaired(fault.paddle_path, set(pairing.paddle.modules), set(pairing.names))
    shared: dict[str, set[str]] = {}
    for pair in pairing.match.pairs:
        for first in {_child(name, ours) for name in pair.torch} - {""}:
            shared.setdefault(first, set()).update(_child(name, theirs) for name in pair.paddle)
    if len(shared) != 1:
        return fault
    ((path, others),) = shared.items()
    if "" in others:
        return fault
    where = fault.where.replace("what it hands to", "what becomes of its output, handed to", 1)
    held = ", ".join(sorted(others))
    where += f"; its weights are those of {held} in Paddle"
    place = next(iter(others)) if len(others) == 1 else fault.paddle_path
    return replace(fault, torch_path=path, paddle_path=place, where=where, own_code=False)


def _unpaired(path: str, modules: set[str], paired: set[str]) -> set[str]:
    """Return the modules directly below `path`, or below a mere list of them, without counterpart."""
    return {m for m in modules if m and m not in paired and _below(m, path, paired)}


def _below(module: str, path: str, paired: set[str]) -> bool:
    above = parent(module)
    while above and above != path and above not in paired:
        above = parent(above)
    return above == path


def _child(tensor: str, modules: set[str]) -> str:
    """Return the outermost of `modules` that holds the tensor, "" if none does."""
    holders = [m for m in modules if tensor.startswith(f"{m}.")]
    return min(holders, key=len, default="")
