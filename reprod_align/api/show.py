"""An entry, or a list of them, as text and as plain data."""

import re
from collections.abc import Sequence
from typing import Any

from reprod_align.api.calls import find_rows
from reprod_align.api.entry import DATA_NOTE, Entry
from reprod_align.api.running import NOT_RUN, EntryOutcome, list_versions

_PARTS = {"torch_side": "PyTorch", "paddle_side": "Paddle"}
PLAIN = "the plain call, which differs"


def as_text(entry: Entry, outcome: EntryOutcome) -> str:
    """Return an entry with its code on both sides and what running it gave."""
    lines = [entry.slug, "", entry.differs, ""]
    lines += [f"PyTorch: {entry.apis[0]}", f"Paddle:  {entry.apis[1]}"]
    lines += [f"source:  {'; '.join(entry.sources)}"] * bool(entry.sources)
    lines += [f"port:    {row}" for row in find_rows(_read_name(entry))]
    lines += ["obsolete: the plain call is gone"] * entry.obsolete
    for side, words in list_parts(entry).items():
        lines += [
            "",
            f"{words}:",
            *(f"    {line}".rstrip() for line in entry.code(side).splitlines()),
        ]
    for helper in entry.helpers():
        lines += ["", *(f"    {line}".rstrip() for line in helper.splitlines())]
    lines += ["", f"result: {describe_outcome(outcome)} ({describe_versions()})"]
    if entry.because:
        lines.append(f"compared to {entry.tolerance:g}: {entry.because}")
    return "\n".join([*lines, f"({DATA_NOTE})"])


def _read_name(entry: Entry) -> str:
    """Return the name of PyTorch's API that an entry is about, without arguments."""
    return re.split(r"[^.\w]", entry.apis[0])[0]


def as_rows(rows: Sequence[str]) -> str:
    """Return what is known of a call that no entry is about."""
    return "\n".join(
        ["what `reprod-align port` tries in its place:", *(f"  {one}" for one in rows)]
    )


def list_parts(entry: Entry) -> dict[str, str]:
    """Return which functions of an entry are shown, and their headings."""
    return _PARTS | ({"plain": PLAIN} if entry.has_trap else {})


def as_list(found: Sequence[Entry]) -> str:
    """Return one line an entry, in columns: name, the two calls, what differs."""
    width = max((len(entry.slug) for entry in found), default=0)
    return "\n".join(f"{entry.slug:<{width}}  {entry.differs}" for entry in found)


def as_data(entry: Entry, outcome: EntryOutcome | None = None) -> dict[str, Any]:
    """Return an entry for JSON; with its outcome if it was run."""
    data: dict[str, Any] = {
        "name": entry.slug,
        "torch": entry.apis[0],
        "paddle": entry.apis[1],
        "differs": entry.differs,
        "chinese": entry.chinese,
        "sources": list(entry.sources),
        "obsolete": entry.obsolete,
        "calls": find_rows(_read_name(entry)),
        "code": {side: entry.code(side) for side in list_parts(entry)},
    }
    if outcome is not None:
        data |= {
            "result": outcome.result,
            "measured": outcome.measured,
            "versions": list_versions(),
        }
    return data


def describe_outcome(outcome: EntryOutcome) -> str:
    """Return an outcome in one line."""
    return outcome.result + (f": {outcome.measured}" if outcome.measured else "")


def describe_versions() -> str:
    """Return the frameworks' names and versions."""
    return ", ".join(
        f"{name} {version or 'not installed'}" for name, version in list_versions().items()
    )


def choose_exit_code(outcome: EntryOutcome) -> int:
    """Return the exit code: 0 if the entry holds, 1 if not, 2 if it could not be run."""
    if outcome.result == NOT_RUN:
        return 2
    return 0 if outcome.holds else 1
