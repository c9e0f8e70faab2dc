"""Text for people (tables, long lists made short, counted nouns), and dotted names of modules and tensors.

`similarity` tells how alike two names are: `encoder.layer.0.attention.self.query`, `layers.0.attn.q_proj`.
"""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache

from reprod_align.errors import one_line


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return `rows` of cells as lines, every column as wide as its widest cell, two spaces between."""
    rows = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def shorten(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Return "a, b, c and 4 more": the first `most` names, each in one line, and how many follow."""
    shown = separator.join(map(one_line, names[:most]))
    return shown + and_more(names, most)


def shorten_lines(lines: Sequence[str], most: int, indent: str = "") -> list[str]:
    """Return the first `most` lines, and "... and 4 more" after `indent` if there are more."""
    more = and_more(lines, most)
    return [*lines[:most], f"{indent}...{more}"] if more else list(lines)


def and_more(items: Sequence[object], most: int) -> str:
    """Return " and 4 more" for 4 items beyond `most`, "" without any."""
    return f" and {len(items) - most} more" if len(items) > most else ""


def shorten_path(path: str | os.PathLike[str]) -> str:
    """Return `path` as the user would type it here: relative if it lies below this folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith(os.pardir) else relative


def count(number: int, noun: str, plural: str = "") -> str:
    """Return "1 tensor", "3 tensors"; `plural` where it is not the noun and an s."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


# words that stand for the same thing in the model zoos' naming conventions
_SYNONYMS = {
    "query": "q", "key": "k", "value": "v", "wq": "q", "wk": "k", "wv": "v", "wo": "o",
    "attention": "attn", "att": "attn", "mha": "attn",
    "layers": "layer", "blocks": "layer", "block": "layer", "h": "layer",
    "layernorm": "norm", "ln": "norm", "bn": "norm", "batchnorm": "norm", "groupnorm": "norm",
    "embeddings": "embed", "embedding": "embed", "emb": "embed", "wte": "embed",
    "word": "token", "tokens": "token", "positions": "position", "visual": "vision",
    "tok": "token", "positional": "position", "pos": "position", "wpe": "position",
    "linear": "fc", "dense": "fc", "lin": "fc", "proj": "fc", "projection": "fc",
    "intermediate": "up", "up": "up", "out": "output", "head": "classifier", "cls": "classifier",
    "downsample": "shortcut", "conv": "conv", "dropout": "drop", "act": "activation",
    "relu": "activation", "gelu": "activation", "rnn": "rnn", "lstm": "rnn", "gru": "rnn",
    "encoder": "encoder", "decoder": "decoder", "model": "", "module": "", "net": "",
}  # fmt: skip

_NUMBERED = re.compile(r"(.*?)(\d{1,9})")


@cache
def tokens(name: str) -> tuple[str, ...]:
    """Return the words of a dotted name, in order, in one vocabulary; numbers stay numbers."""
    spaced = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    spaced = re.sub(r"([A-Za-z])(\d)", r"\1_\2", spaced)
    words = re.split(r"[._\-]+", spaced.lower())
    known = (_SYNONYMS.get(word, word) for word in words)
    return tuple(word for word in known if word)


@cache
def similarity(first: str, second: str) -> float:
    """Return how alike two names are, 0 to 1; later words, which say more, weigh more."""
    if first == second:
        return 1.0
    ours, theirs = _weigh_words(tokens(first)), _weigh_words(tokens(second))
    every = sorted(ours.keys() | theirs.keys())  # sums of floats depend on their order
    if not every:
        return 1.0
    shared = sum(min(ours.get(word, 0.0), theirs.get(word, 0.0)) for word in every)
    total = sum(max(ours.get(word, 0.0), theirs.get(word, 0.0)) for word in every)
    return shared / total


def _weigh_words(words: tuple[str, ...]) -> dict[str, float]:
    weights: dict[str, float] = {}
    for place, word in enumerate(reversed(words)):
        weights[word] = weights.get(word, 0.0) + 1.0 / (1 + place)
    return weights


def is_number(name: str) -> bool:
    """Tell whether the last part of a dotted name is a number, as in a Sequential."""
    return last_part(name).isdigit()


def numbered(name: str) -> tuple[str, int] | None:
    """Return a dotted name that ends in a number without that number, and the number; None without one."""
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else None


def pattern(name: str) -> str:
    """Return the dotted name with its numbers left out: what repeats from block to block."""
    return ".".join("#" if part.isdigit() else part for part in name.split("."))


def parent(name: str) -> str:
    """Return the dotted name without its last part."""
    return name.rpartition(".")[0]


def last_part(name: str) -> str:
    """Return the last part of a dotted name."""
    return name.rpartition(".")[2]


def ancestors(name: str) -> Iterator[str]:
    """Yield the names above a dotted name, the nearest first; "" is the last."""
    while name:
        name = parent(name)
        yield name


def is_within(name: str, ancestor: str) -> bool:
    """Tell whether `name` is `ancestor` or lies below it."""
    return not ancestor or name == ancestor or name.startswith(f"{ancestor}.")
