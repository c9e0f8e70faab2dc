"""What a finding states, as structure. The one place that reads its words.

`Finding` holds module, lines, code and edit as fields, and the cause in words. What the words state is
read here: from the code that they quote, from settings that they name, and by `_WORDS`. Where a finding
says only how far the values are apart, nothing is stated.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from benchmarks.mutants.cause import CUT, Told, canonical, facts_of_call
from benchmarks.mutants.source import is_plain, last_name, spell

Finding = Mapping[str, Any]
Names = Mapping[str, set[str]]
"""modules: what PyTorch's code calls them -> what the port's code does"""

_CODE: Final = r"`([^`]+)`"
_BOTH: Final = rf"{_CODE} in Paddle(?: and|,) {_CODE} in PyTorch"
_INSIDE: Final = rf"{_CODE} in Paddle, \w+ inside {_CODE}"
_INSTEAD: Final = rf"{_CODE} in place of {_CODE} gives PyTorch's numbers"
_COMES_FROM: Final = rf"the \w+ comes from {_CODE}"
_PASSES_ON: Final = r"the output of (\w+)"
_DECIDED: Final = rf"{_CODE} decides it"
_SETTING: Final = r"(?:Settings differ: |; )(\w+): (?:PyTorch|kind|\S+ is \w+ in PyTorch)"
_STEP: Final = rf"PyTorch calls (\w+) inside {_CODE} here"
_WRITTEN: Final = r"\w+: PyTorch [^,;]+, Paddle (-?\d[\d.e-]*)(?=[;.,]? |$)"
_VALUE: Final = r"(\w+) is \S+ in Paddle: \S+ gives PyTorch's numbers"
# what the words of a cause state, where they quote no code; a group is the name of a call
_WORDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (r"\bmask(ed|s|ing)?\b|causal|hides? |attends to", ("mask",)),
    (r"softmax (is )?over|over axis \d+ instead|over the (queries|keys)", ("axis", "call:softmax")),
    (r"over axis \d+ in place of", ("axis",)),
    (r"permuted (in|by)|transpose|reshape|in the order|heads are (split|merged)", ("layout", "axis")),
    (r"\brolled\b|reverse order|order along axis", ("layout", "index")),
    (r"takes (index|the (first|last))|the indices\b|the index -?\d|slice from|\boff by\b", ("index",)),
    (r"\bdrops\b|dropout|draws random numbers", ("dropout",)),
    (r"\bepsilon\b", ("setting:epsilon", "argument:epsilon")),
    (r"norm is missing|norm is one too many|norm over", ("norm",)),
    (r"the function is (?P<call>\w+)(?: \([^)]*\))? in Paddle and (?P<other>\w+)", ("function",)),
    (r"(?P<call>tri[ul]) of diagonal -?\d+ in place of", ("argument:diagonal",)),
    (r"they start at -?\d+, PyTorch's at", ("summand",)),
    (r"(?P<call>\w+)(?: \([^)]*\))?: \w+ applies it here", ("function",)),
    (r"are PyTorch's times|scaled (by|differently)|the rest is scaled|ratio is one number", ("factor",)),
    (r"plus the constant|PyTorch's plus|does not add|adds .* (once more|where)|\bminus\b", ("summand",)),
    (r"opposite sign", ("sign", "summand", "operator")),
    (r"exchanged|the (query|key|value) is\b|\breversed\b", ("order", "value")),
    (r"passes on", ("value",)),
    (r"tied to", ("tie",)),
    (r"gradient (is stopped|stops|is zero)|\bdetach\b", ("gradient",)),
    (r"a tensor that Paddle's module makes", ("table",)),
    (r"all zero|everywhere in Paddle", ("value", "constant")),
    (r"PyTorch computes .* Paddle ", ("operator", "summand", "factor")),
    (r"from position|by steps of|of base", ("table", "summand", "factor")),
)  # fmt: skip
_NUMBER: Final = r"\w+ is -?\d\S* in Paddle: -?\d\S* gives PyTorch's numbers"
_COUNTED: Final = r"\S+ holds \d+ layers? in Paddle and \d+ in PyTorch"
_LONE: Final = "no counterpart of this"


def read_finding(finding: Finding, pairs: Mapping[str, str]) -> Told:
    """Return what a finding states."""
    words = split_cause(_say(finding))
    if re.search(_COUNTED, _say(finding)):
        return Told(frozenset({"constant"}))
    if _LONE in words:  # a tensor that one side lacks tells of itself
        return Told(frozenset(_facts_of_tensor(finding)), tuple(_wrong_code(_say(finding))))
    if edit := finding.get("edit"):
        words += f". `{edit['after']}` in place of `{edit['before']}` gives PyTorch's numbers"
    names = _name_modules(pairs, finding["torch_name"])
    facts = {*_facts_of_words(words), *_facts_of_settings(words), *_facts_of_code(words, names)}
    facts.update(_facts_of_number(finding))
    return Told(frozenset(facts), tuple(dict.fromkeys(_wrong_code(words))))


def _say(finding: Finding) -> str:
    """Return what a finding says, the evidence first."""
    settings = finding["settings"] and f"Settings differ: {finding['settings']}"
    parts = [finding["evidence"], finding["cause"], finding["remedy"], settings]
    return ". ".join(part for part in parts if part)


def split_cause(message: str) -> str:
    """Return what follows the sentence that says where and how far; all where none does."""
    evidence = re.search(r"expected .*?, got .*?(?:\. |$)|differs? by \S+(?:\. |$)", message)
    if evidence:
        return message[evidence.end() :]
    head, _, rest = message.partition(". ")
    return rest or (head if re.search(rf"{_LONE}|tied to|`|gradient", head) else "")


def _facts_of_words(words: str) -> Iterator[str]:
    plain = re.sub(rf"{_COMES_FROM}|{_CODE}|{_PASSES_ON}", "", words)  # a module's name is no cause
    for pattern, facts in _WORDS:
        for found in re.finditer(pattern, plain):
            yield from facts
            yield from (f"call:{canonical(name)}" for name in found.groupdict().values() if name)


def _facts_of_settings(words: str) -> Iterator[str]:
    for pattern in (_SETTING, _VALUE):
        for name in re.findall(pattern, words):
            yield from (f"setting:{canonical(name)}", f"argument:{canonical(name)}")
    if re.search(_NUMBER, words):
        yield "constant"


def _facts_of_number(finding: Finding) -> Iterator[str]:
    """Yield "constant" where the line that is named writes out the number that a setting has."""
    for number in re.findall(_WRITTEN, finding["settings"]):
        if re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", finding["paddle_code"] or ""):
            yield "constant"


def _facts_of_tensor(finding: Finding) -> Iterator[str]:
    held = (finding["torch_name"], finding["paddle_name"])  # one names the module that lacks it
    extra = f"{_LONE} Paddle" in finding["evidence"]
    last = (held[extra] or held[not extra]).rpartition(".")[2]
    yield from ("tie", f"setting:{canonical(last)}", f"argument:{canonical(last)}")


def _facts_of_code(words: str, names: Names) -> Iterator[str]:
    """Yield what the quoted code states: calls missing or surplus, or what differs in two expressions."""
    for code in re.findall(rf"(?:PyTorch|Paddle) calls {_CODE} here", words):
        yield from _calls(_parse(code), names)
    for code in re.findall(rf"Paddle never calls {_CODE}", words):
        yield f"call:{canonical(code.rpartition('.')[2])}"
    for name, _ in re.findall(_STEP, words):
        yield from facts_of_call(name)
    for name in re.findall(_PASSES_ON, words) if "passes on" in words else ():
        yield from (fact for one in _known_as(name, names) for fact in facts_of_call(one))
    for paddle, torch in [*re.findall(_BOTH, words), *_replaced(words)]:
        yield from _differences(_parse(paddle), _parse(torch), names)


def _replaced(words: str) -> list[tuple[str, str]]:
    """Return the code of the port and what in its place gives PyTorch's numbers."""
    return [(before, after) for after, before in re.findall(_INSTEAD, words) if _parse(before)]


def _wrong_code(words: str) -> Iterator[str]:
    """Yield the port's expressions of which the finding says that they should be others."""
    found = [paddle for paddle, _ in [*re.findall(_BOTH, words), *re.findall(_INSIDE, words)]]
    found += [before for before, _ in _replaced(words)]
    for pattern in (rf"Paddle calls {_CODE} here", _COMES_FROM, _DECIDED):
        found += re.findall(pattern, words)
    for code in found:
        node = _parse(code)
        if code.endswith(CUT):
            yield code
        elif node is not None and not is_plain(node):
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
    for whole, part in ((torch, paddle), (paddle, torch)):
        if isinstance(whole, ast.BinOp) and part is not None:
            if spell(part) in (spell(whole.left), spell(whole.right)):
                yield from _calls(whole, names)


def _keywords(call: ast.Call) -> dict[str, str]:
    return {canonical(it.arg): spell(it.value) for it in call.keywords if it.arg}


def _calls(node: ast.AST | None, names: Names) -> Iterator[str]:
    """Yield the facts that name the outermost call or operator, in either side's words."""
    if isinstance(node, ast.BinOp):
        yield "summand" if isinstance(node.op, ast.Add | ast.Sub) else "factor"
    name = last_name(node.body if isinstance(node, ast.Expression) else node) if node else ""
    for one in _known_as(name, names):
        yield from facts_of_call(one)


def _known_as(name: str, names: Names) -> set[str]:
    """Return the name of a call, and what the port calls a module of that name."""
    return {name, *names.get(name, ())} - {""}


def _name_modules(pairs: Mapping[str, str], place: str) -> Names:
    """Return what the port calls PyTorch's modules, those of the finding's own module first."""
    names: dict[str, set[str]] = {}
    for torch, paddle in pairs.items():
        names.setdefault(torch.rpartition(".")[2], set()).add(paddle.rpartition(".")[2])
    for torch, paddle in pairs.items():
        around, _, name = torch.rpartition(".")
        if around == place:
            names[name] = {paddle.rpartition(".")[2]}
    return names


def _parse(code: str) -> ast.expr | None:
    try:
        return ast.parse(code.strip(), mode="eval").body
    except SyntaxError:  # it was cut short
        return None
