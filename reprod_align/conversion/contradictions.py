"""Where a map contradicts itself: two rules for the same tensors, a second name that stands for nothing."""

from collections.abc import Iterator, Mapping, Sequence

from reprod_align.conversion.rule import Rule

_SIDES = ("torch", "paddle")


def find_contradiction(rules: Sequence[Rule], tied: Mapping[str, Mapping[str, str]]) -> str:
    """Return what is wrong with rules that are well formed one by one, "" if nothing is.

    Two rules may share a tensor (two PyTorch tensors that are one in Paddle): the plan compares what
    they make of it.
    """
    found = [*_list_repeated(rules), *_list_doubtful(rules), *_list_loose(rules, tied)]
    return found[0] if found else ""


def _list_repeated(rules: Sequence[Rule]) -> Iterator[str]:
    known: dict[tuple[object, object], int] = {}
    for number, rule in enumerate(rules, 1):
        first = known.setdefault((rule.torch, rule.paddle), number)
        if first != number:
            names = " + ".join(rule.torch) or "nothing", " + ".join(rule.paddle) or "nothing"
            yield f"rules {first} and {number} are both for {' -> '.join(names)}: keep one"


def _list_doubtful(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield tensors that one rule says to have no counterpart, and another converts."""
    for side in _SIDES:
        paired = {name: number for number, rule in enumerate(rules, 1)
                  if rule.torch and rule.paddle for name in getattr(rule, side)}  # fmt: skip
        for number, rule in enumerate(rules, 1):
            for name in getattr(rule, side):
                if paired.get(name, number) != number and not (rule.torch and rule.paddle):
                    yield (
                        f"rule {number} says that {name} has no counterpart, and rule {paired[name]} "
                        "gives it one: keep one"
                    )


def _list_loose(rules: Sequence[Rule], tied: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    for side in _SIDES:
        known = {name for rule in rules for name in getattr(rule, side)}
        for second, first in tied.get(side, {}).items():
            if second in known:
                yield f'"tied": {second} is the second name of {first}, and a rule has it too'
            elif first not in known:
                yield f'"tied": {second} is the second name of {first}, which no rule has'
