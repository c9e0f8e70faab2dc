"""Where PyTorch and Paddle differ, as running code: one source for the table, `audit` and the causes.

Importing it imports neither framework. Here are all entries, in the order of the pages, and how one is
found; `entry` says what one is, and runs it.
"""

import difflib
import importlib
import re
from collections.abc import Sequence
from functools import cache
from typing import Final

from reprod_align.api.entry import Convention, Entry
from reprod_align.errors import ReprodError

TOPICS: Final = (
    "layers",
    "activations",
    "norms",
    "convolution",
    "recurrent",
    "attention",
    "tensors",
    "losses",
    "optimizers",
    "schedules",
    "initialisers",
    "data",
    "autograd",
    "obsolete",
)
_COMMAND: Final = re.compile(r"`reprod-align api ([\w-]+)`")
_REFERENCE: Final = re.compile(rf" \(see {_COMMAND.pattern}(?:, {_COMMAND.pattern})*\)")


@cache
def list_entries() -> tuple[Entry, ...]:
    """Return every entry; imports no framework."""
    return tuple(entry for topic in TOPICS for entry in list_topic(topic))


@cache
def list_topic(topic: str) -> tuple[Entry, ...]:
    """Return the entries of one module of `topics`, in the order in which they stand there."""
    module = importlib.import_module(f"reprod_align.api.topics.{topic}")
    own = [kind for kind in vars(module).values() if isinstance(kind, type)]
    return tuple(
        kind()
        for kind in own
        if issubclass(kind, Entry) and kind is not Entry and kind.__module__ == module.__name__
    )


def read_title(topic: str, chinese: bool = False) -> str:
    """Return what a topic is called."""
    module = importlib.import_module(f"reprod_align.api.topics.{topic}")
    return str(module.CHINESE) if chinese else (module.__doc__ or "").split(".")[0].rstrip(".")


def find_named(name: str) -> list[Entry]:
    """Return the entry of that name, or those about the API of that name: torch.gather, LayerNorm.

    F.gelu and another framework's path lead to what has their last part. Raises ReprodError as
    `find_entry` does.
    """
    known = any(entry.slug == name for entry in list_entries())
    about = [] if known else _find_api(name) or _find_api(name.rpartition(".")[2])
    return about or [find_entry(name)]


def _find_api(name: str) -> list[Entry]:
    """Return the entries about an API of this name: whole, or its last parts."""
    wanted = f".{name.lower()}"
    return [
        entry
        for entry in list_entries()
        if any(
            f".{re.split(r'[^.a-z_0-9]', api.lower())[0]}".endswith(wanted) for api in entry.apis
        )
    ]


def find_entry(slug: str) -> Entry:
    """Return the entry of that name. Raises ReprodError with the closest names for an unknown one."""
    for entry in list_entries():
        if entry.slug == slug:
            return entry
    names = [entry.slug for entry in list_entries()]
    close = difflib.get_close_matches(slug.lower(), names, n=3, cutoff=0.4)
    close = close or [entry.slug for entry in search_entries(slug)[:3]]
    hint = f"the closest are {', '.join(close)}" if close else "`reprod-align api` lists all"
    raise ReprodError(f"unknown entry {slug!r}: {hint}")


def search_entries(word: str) -> list[Entry]:
    """Return the entries that have the word, in any case, in a name, sentence, keyword, source or code.

    Several words may be written as one, or with other signs between: "cross entropy", CrossEntropy.
    """
    plain, joined = word.lower(), _join(word)
    return [
        entry
        for entry in list_entries()
        if plain in (text := _join_texts(entry)) or (joined and joined in _join(text))
    ]


def _join(text: str) -> str:
    """Return a text's letters and digits alone."""
    return re.sub(r"[\W_]+", "", text.lower())


@cache
def conventions() -> dict[tuple[str, str], tuple[Convention, str]]:
    """Return what the entries know of settings: by (kind or "" for all, setting), with the entry's slug."""
    found: dict[tuple[str, str], tuple[Convention, str]] = {}
    for entry in list_entries():
        for setting, convention in entry.conventions.items():
            for kind in entry.convention_kinds or ("",):
                found[kind, setting] = convention, entry.slug
    return found


def find_convention(kind: str, setting: str) -> tuple[Convention, str]:
    """Return how Paddle writes a setting of a kind of layer, and the entry that says so.

    The entry is "" where Paddle writes it as PyTorch does.
    """
    known = conventions()
    return known.get((kind, setting)) or known.get(("", setting), (Convention(setting), ""))


@cache
def optimizer_arguments() -> dict[str, str]:
    """Return Paddle's argument for an optimizer's setting, by PyTorch's name."""
    found: dict[str, str] = {}
    for entry in list_entries():
        found.update(entry.optimizer_arguments)
    return found


@cache
def optimizer_settings() -> dict[str, str]:
    """Return the slug of the entry that tells of an optimizer's setting, by PyTorch's name."""
    return {
        setting: entry.slug
        for entry in list_entries()
        for setting in (*entry.optimizer_arguments, *entry.optimizer_settings)
    }


def refer_to(slugs: Sequence[str], already: str = "") -> str:
    """Return where to read on: " (see `reprod-align api NAME`)", or "" where `already` says it."""
    commands = [f"`reprod-align api {slug}`" for slug in dict.fromkeys(slugs) if slug]
    named = [command for command in commands if command not in already]
    return f" (see {', '.join(named)})" if named else ""


def split_references(text: str) -> tuple[str, list[str]]:
    """Return a text without what `refer_to` has added to it, and the names of the entries."""
    names = [name for found in _REFERENCE.finditer(text) for name in _COMMAND.findall(found[0])]
    return _REFERENCE.sub("", text), names


def _join_texts(entry: Entry) -> str:
    sides = [entry.code(side) for side in ("torch_side", "paddle_side")]
    words = [entry.slug, entry.differs, entry.chinese, entry.keywords, *entry.apis, *entry.sources]
    return "\n".join((*words, *sides)).lower()
