"""What a finding states, as structure. The one place that reads its words.

Today's state: `Finding` holds module, lines and code as fields, and the cause in words. What the words
state is read here: from the code that they quote, from settings that they name, and by `_WORDS`. A
finding that holds its code and its edit as fields will be read from those, and nothing else of the
benchmark changes. Where a finding says only how far the values are apart, nothing is stated.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.mutants.cause import Told, canonical, facts_of_call
from benchmarks.mutants.source import last_name, spell

Finding = Mapping[str, Any]
Names = Mapping[str, set[str]]
"""modules: what PyTorch's code calls them -> what the port's code does"""

_CODE: Final = r"`([^`]+)`"
_BOTH: Final = rf"{_CODE} in Paddle(?: and|,) {_CODE} in PyTorch"
_INSTEAD: Final = rf"{_CODE} in place of {_CODE} gives PyTorch's numbers"
_SETTING: Final = r"(?:Settings differ: |; )(\w+): (?:PyTorch|kind)"
_VALUE: Final = r"(\w+) is \S+ in Paddle: \S+ gives PyTorch's numbers"
# what the words of a cause state, where they quote no code; a fact as benchmarks/mutants/cause.py has it
_WORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r"\bmask(ed|s|ing)?\b|causal|hides? |attends to", ("mask",)),
    (r"softmax (is )?over|over axis \d+ instead|over the (queries|keys)", ("axis", "call:softmax")),
    (r"axes are permuted|permuted by|transpose|reshape|in the order|heads are (split|merged)", ("layout", "axis")),
    (r"\brolled\b|reverse order|order along axis", ("layout", "index")),
    (r"takes index|\bthe (first|last) along|\bthe indices\b|the index |slice from|\boff by\b", ("index",)),
    (r"\bdrops\b|dropout|draws random numbers", ("dropout",)),
    (r"\bepsilon\b", ("setting:epsilon", "argument:epsilon")),
    (r"norm is missing|norm is one too many|the \w+ normalises|norm over", ("norm",)),
    (r"the function is (\w+) in Paddle and (\w+)", ("function",)),
    (r"applies it here", ("function", "missing")),
    (r"are PyTorch's times|scaled (by|differently)|the rest is scaled|ratio is one number", ("factor",)),
    (r"plus the constant|PyTorch's plus|does not add|adds .* (once more|where)|\bminus\b", ("summand",)),
    (r"opposite sign", ("sign", "summand", "operator")),
    (r"exchanged|the (query|key|value) is\b", ("order", "value")),
    (r"passes on", ("missing", "value", "order")),
    (r"tied to", ("tie",)),
    (r"gradient (is stopped|stops|is zero)|\bdetach\b", ("gradient",)),
    (r"(is|made) without (a|its) bias", ("setting:bias", "argument:bias")),
    (r"a tensor that Paddle's module makes", ("table",)),
    (r"all zero|everywhere in Paddle", ("value", "constant")),
    (r"PyTorch computes .* Paddle ", ("operator", "summand", "factor")),
    (r"from position|by steps of|of base", ("table", "summand", "factor")),
)  # fmt: skip
_LONE: Final = "no counterpart of this"


def read_finding(finding: Finding, pairs: Mapping[str, str]) -> Told:
    """Return what a finding states."""
    words = split_cause(finding["message"])
    if _LONE in words:  # a tensor that one side lacks tells of itself
        return Told(frozenset(_facts_of_tensor(finding)))
    facts = {*_facts_of_words(words), *_facts_of_settings(words)}
    facts |= set(_facts_of_code(words, _name_modules(pairs)))
    return Told(frozenset(facts), tuple(_wrong_code(words)))


def split_cause(message: str) -> str:
    """Return what follows the sentence that says where and how far; all where none does."""
    evidence = re.search(r"expected .*?, got .*?(?:\. |$)|differs? by \S+(?:\. |$)", message)
    if evidence:
        return message[evidence.end() :]
    head, _, rest = message.partition(". ")
    return rest or (head if re.search(rf"{_LONE}|tied to|`|gradient", head) else "")


def _facts_of_words(words: str) -> Iterator[str]:
    plain = re.sub(_CODE, "", words)
    for pattern, facts in _WORDS:
        found = re.search(pattern, plain)
        if found:
            yield from facts
            yield from (
                f"call:{canonical(name)}" for name in found.groups()[:2] if name and name.isalpha()
            )


def _facts_of_settings(words: str) -> Iterator[str]:
    for pattern in (_SETTING, _VALUE):
        for name in re.findall(pattern, words):
            yield from (f"setting:{canonical(name)}", f"argument:{canonical(name)}")


def _facts_of_tensor(finding: Finding) -> Iterator[str]:
    last = (finding["paddle_name"] or finding["torch_name"]).rpartition(".")[2]
    yield from ("tie", f"setting:{canonical(last)}", f"argument:{canonical(last)}")


def _facts_of_code(words: str, names: Names) -> Iterator[str]:
    """Yield what the quoted code states: calls missing or surplus, or what differs in two expressions."""
    for side, fact in (("PyTorch", "missing"), ("Paddle", "surplus")):
        for code in re.findall(rf"{side} calls {_CODE} here", words):
            yield fact
            yield from _calls(_parse(code), names)
    pairs = re.findall(_BOTH, words) + [(old, new) for new, old in re.findall(_INSTEAD, words)]
    for paddle, torch in pairs:
        yield from _differences(_parse(paddle), _parse(torch), names)


def _wrong_code(words: str) -> Iterator[str]:
    """Yield the port's expressions of which the finding says that they should be others."""
    found = [paddle for paddle, _ in re.findall(_BOTH, words)]
    found += [before for _, before in re.findall(_INSTEAD, words)]
    found += re.findall(rf"Paddle calls {_CODE} here", words)
    for code in found:
        node = _parse(code)
        if node is not None:
            yield spell(node)


def _differences(paddle: ast.expr | None, torch: ast.expr | None, names: Names) -> Iterator[str]:
    """Yield in what two expressions differ: their calls, or the arguments of one call."""
    if isinstance(paddle, ast.Call) and isinstance(torch, ast.Call):
        if canonical(last_name(paddle)) != canonical(last_name(torch)):
            yield from _calls(ast.Expression(paddle.func), names)
        ours, theirs = _keywords(torch), _keywords(paddle)
        for name in {*ours, *theirs}:
            if ours.get(name) != theirs.get(name):
                yield f"argument:{name}"


def _keywords(call: ast.Call) -> dict[str, str]:
    return {canonical(it.arg): spell(it.value) for it in call.keywords if it.arg}


def _calls(node: ast.AST | None, names: Names) -> Iterator[str]:
    """Yield the facts that name the outermost call, in either side's words."""
    name = last_name(node.body if isinstance(node, ast.Expression) else node) if node else ""
    for one in {name, *names.get(name, ())} - {""}:
        yield from facts_of_call(one)


def _name_modules(pairs: Mapping[str, str]) -> Names:
    names: dict[str, set[str]] = {}
    for torch, paddle in pairs.items():
        names.setdefault(torch.rpartition(".")[2], set()).add(paddle.rpartition(".")[2])
    return names


def _parse(code: str) -> ast.expr | None:
    try:
        return ast.parse(code.strip(), mode="eval").body
    except SyntaxError:  # it was cut short
        return None
