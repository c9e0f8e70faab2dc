"""Arguments that Paddle lacks or calls otherwise."""

import ast
from collections.abc import Iterable, Iterator

from reprod_align.explain.code import Code, Edit, dotted
from reprod_align.porting.remedy import Case, Remedy

_REFUSED = r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'"


class InplaceArgument(Remedy):
    """Paddle's layer has no inplace argument; its result is the same."""

    entry = "activation-inplace"

    def propose(self, case: Case) -> Iterable[Edit]:
        """Leave the argument out, in every call of the layer or function."""
        found = case.find(_REFUSED)
        if found and found[2] in ("inplace", "memory_format", "non_blocking"):
            yield from drop_keyword(case.draft, found[1], found[2])


def _find_keywords(
    code: Code, function: str, argument: str
) -> Iterator[tuple[ast.Call, ast.keyword]]:
    """Yield the calls of a function or method with an argument by that name, and the argument."""
    for node in code.calls():
        if (
            dotted(node.func).rpartition(".")[2] == function
            or getattr(node.func, "attr", "") == function
        ):
            for keyword in node.keywords:
                if keyword.arg == argument:
                    yield node, keyword


def drop_keyword(code: Code, function: str, argument: str) -> Iterator[Edit]:
    """Yield the edits that leave an argument out of every call of a function."""
    for node, keyword in _find_keywords(code, function, argument):
        given = [*node.args, *node.keywords]
        kept = [code.source(one) for one in given if one is not keyword]
        yield code.replace(node, f"{code.source(node.func)}({', '.join(kept)})")
