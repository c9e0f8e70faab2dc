"""Python's `random` and numpy's global generator, where the two sides draw from them otherwise."""

from reprod_align.alignment.findings import Findings
from reprod_align.model.trace import Trace


def note_generators(findings: Findings, reference: Trace, port: Trace, mode: str) -> None:
    """Note each generator outside the frameworks from which the two sides draw unequally.

    Both start from one seed, so that equal draws give equal numbers.
    """
    sides = ("PyTorch", reference.generators), ("Paddle", port.generators)
    for name in dict.fromkeys([*reference.generators, *port.generators]):
        drawing = [side for side, drawn in sides if name in drawn]
        if len(drawing) == 1:
            (other,) = {"PyTorch", "Paddle"} - {*drawing}
            text = f"in {mode} mode {drawing[0]}'s model draws from {name}, and {other}'s does not"
        elif reference.generators[name] != port.generators[name]:
            text = f"in {mode} mode both models draw from {name}, but not the same draws"
        else:
            continue
        findings.leave_unjudged(
            "random numbers", f"{text}: whether the draws mean the same is not known"
        )
