"""Why a fault's numbers differ: the known mistakes are tried on what the module had at hand."""

from reprod_align.alignment.locating.locate import Fault
from reprod_align.causes import explain_forward, explain_gradient, explain_mask
from reprod_align.causes.entries import add_entry
from reprod_align.model.settings import ModuleSettings
from reprod_align.model.trace import Array, Call, Trace


def cause_of(fault: Fault, reference: Trace, settings: ModuleSettings | None) -> str:
    """Return the cause of a fault in a sentence, and where it is told of; "" if no known mistake explains it.

    settings: of the module on the PyTorch side, None if it has none of that name.
    """
    return add_entry(_cause(fault, reference, settings))


def _cause(fault: Fault, reference: Trace, settings: ModuleSettings | None) -> str:
    if fault.expected is None or fault.actual is None:
        return ""
    if fault.stage == "backward":
        return explain_gradient(fault.expected, fault.actual)
    if fault.made_with:
        return explain_mask(fault.expected, fault.actual)
    given = _at_hand(fault, reference)
    kind = settings.kind if settings is not None else ""
    values = settings.values if settings is not None else {}
    arrays, names = [array for _, array in given], [name for name, _ in given]
    return explain_forward(fault.expected, fault.actual, arrays, kind, values, names)


def _at_hand(fault: Fault, reference: Trace) -> list[tuple[str, Array]]:
    """Return what the reference's code had when it made the value, by name."""
    call = fault.torch_call
    handed = fault.torch_path != call.path and call.parent is not None
    whole = reference.calls[call.parent] if handed and call.parent is not None else call
    tick = call.began if handed else call.finished
    lone = len(whole.inputs) == 1
    given = [
        ("its input" if lone else f"its input {path}", leaf.array)
        for path, leaf in whole.inputs.items()
    ]
    if fault.own_code:
        given += _made_before(whole, tick, reference)
    return given


def _made_before(whole: Call, tick: int, reference: Trace) -> list[tuple[str, Array]]:
    """Return the outputs of a module's children that had been called by then."""
    made = []
    for call in reference.calls:
        inner = call.parent is not None and reference.calls[call.parent] is whole
        if inner and 0 <= call.finished < tick:
            name = call.path[len(whole.path) :].lstrip(".")
            made += [(f"the output of {name}", leaf.array) for leaf in call.outputs.values()]
    return made
