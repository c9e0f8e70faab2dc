"""Submissions tampered with at random: which kind, where and by how much follows from a seed.

    python -m tests.submission.forging 500 7        # so many of them, from this seed: a table by kind

Each is caught, or docs/security.md says why no file could tell: the reason stands in REASONS.
"""

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from reprod_align.errors import ReprodError
from reprod_align.records import load_record, save_record
from reprod_align.submission import verify
from tests.submission.making import (
    STEPS,
    WEIGHTS,
    change_record,
    edit_json,
    judge,
    make_submission,
    write_training_logs,
)

import numpy as np

SIDES = ("torch", "paddle")
REASONS: Final[Mapping[str, str]] = {
    "claim": "Dates, versions, and digests of files that were not submitted are claims",
    "float32 log": "The float32 losses of a training stand only in its log",
    "all copies": "A number that is changed in every copy, with the checks run again, is simply another run",
}
"""why a change can pass -> the words of docs/security.md"""
Forge = Callable[[Path, Random], str]
"""changes a submission; returns the reason why it may pass, "" if it must be caught"""


def _leaves(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in items:
            yield from _leaves(inner, (*way, name))
    else:
        yield way, value


def _put(value: Any, way: tuple[Any, ...], new: Any) -> None:
    for name in way[:-1]:
        value = value[name]
    value[way[-1]] = new


def _result(logs: Path, draw: Random) -> Path:
    return logs / "strict" / f"{draw.choice(STEPS)}_diff.json"


def _edit_leaf(logs: Path, draw: Random, fits: Callable[[Any], bool], change: Callable[[Any], Any],
               parts: tuple[str, ...] = ("official", "strict", "passed", "name")) -> str:  # fmt: skip
    path = _result(logs, draw)
    content = json.loads(path.read_text())
    ways = [(way, value) for way, value in _leaves(content) if way[0] in parts and fits(value)]
    way, value = draw.choice(ways)
    edit_json(path, lambda held: _put(held, way, change(value)))
    return ""


def change_number(logs: Path, draw: Random) -> str:
    """A number of a result."""
    factor = draw.choice((0.5, 2.0, 1.001, 100.0))
    return _edit_leaf(
        logs, draw, lambda it: isinstance(it, float) and it != 0, lambda it: it * factor
    )


def change_count(logs: Path, draw: Random) -> str:
    """A whole number of a result, or a zero."""
    return _edit_leaf(
        logs, draw,
        lambda it: isinstance(it, (int, float)) and not isinstance(it, bool) and it == int(it),
        lambda it: it + draw.choice((1, 7, -1)),
    )  # fmt: skip


def change_switch(logs: Path, draw: Random) -> str:
    """A verdict inside a result."""
    return _edit_leaf(logs, draw, lambda it: isinstance(it, bool), lambda it: not it)


def change_text(logs: Path, draw: Random) -> str:
    """A key, a rule's name, a dtype or a reason of a result."""
    return _edit_leaf(logs, draw, lambda it: isinstance(it, str), lambda it: f"{it}x")


def drop_from_result(logs: Path, draw: Random) -> str:
    """A key's entry, a part or a field of a result."""

    def work(held: Any) -> None:
        part = held[draw.choice(("official", "strict"))]
        place = draw.choice((held, part, part["rule"], part["keys"], part["keys"][0]))
        names = [*place] if isinstance(place, dict) else [*range(len(place))]
        del place[draw.choice([name for name in names if name not in ("reason", "remarks")])]

    edit_json(_result(logs, draw), work)
    return ""


def exchange_results(logs: Path, draw: Random) -> str:
    """The results of two steps."""
    first, second = (logs / "strict" / f"{name}_diff.json" for name in draw.sample(STEPS, 2))
    texts = first.read_text(), second.read_text()
    first.write_text(texts[1])
    second.write_text(texts[0])
    return ""


def change_making(logs: Path, draw: Random) -> str:
    """What a result says that its records were made with."""
    part = draw.choice(("records", "sources", "versions", "date", "all"))

    def work(held: Any) -> None:
        made = held["made"]
        if part == "all":
            del held["made"]
        elif part == "date":
            made["date"] = "2020-01-01T00:00:00+0000"
        elif part == "sources":
            (name,) = made["sources"]["torch"]
            made["sources"][draw.choice(SIDES)][name] = "0" * 64
        elif part == "versions":
            made["versions"][draw.choice(("torch", "numpy"))] = "0.1"
        else:
            name = draw.choice([*made["records"]])
            made["records"].pop(name) if draw.random() < 0.5 else made["records"].update(
                {name: "0" * 64}
            )

    edit_json(_result(logs, draw), work)
    return "claim" if part == "date" else ""


def change_log(logs: Path, draw: Random) -> str:
    """A line of a check's log: a number, a verdict, or the whole line."""
    path = logs / f"{draw.choice(STEPS)}_diff.log"
    lines = path.read_text().splitlines()
    telling = [
        at
        for at, line in enumerate(lines)
        if "check" in line or "strict" in line or "reprod_align" in line
    ]
    at = draw.choice(telling)
    kind = draw.choice(("drop", "flip"))
    if kind == "flip":
        for old, new in (("True", "False"), ("passed", "failed")):
            if old in lines[at]:
                lines[at] = lines[at].replace(old, new, 1)
                break
    else:
        del lines[at]
    path.write_text("\n".join(lines) + "\n")
    return ""


def exchange_logs(logs: Path, draw: Random) -> str:
    """The logs of two steps."""
    first, second = (logs / f"{name}_diff.log" for name in draw.sample(STEPS, 2))
    texts = first.read_text(), second.read_text()
    first.write_text(texts[1])
    second.write_text(texts[0])
    return ""


def _records(logs: Path, draw: Random) -> tuple[str, list[Path]]:
    step = draw.choice(STEPS)
    folder = draw.choice((logs, logs / "strict"))
    sides = draw.choice((("torch",), ("paddle",), SIDES))
    return step, [folder / f"{step}_{side}.npy" for side in sides]


def scale_record(logs: Path, draw: Random) -> str:
    """Numbers of a record, on one side or both, in one precision; perhaps judged again."""
    step, paths = _records(logs, draw)
    record = np.load(paths[0], allow_pickle=True).item()
    keys = [key for key, array in record.items() if array.dtype.kind == "f" and np.any(array)]
    key, factor = draw.choice(keys), draw.choice((1.5, 0.5, 2.0, 1.01))
    for path in paths:
        change_record(
            path, lambda held: held.update({key: held[key] * held[key].dtype.type(factor)})
        )
    if draw.random() < 0.5:
        judge(logs, step, logs.parent / WEIGHTS)
        if step == "train_align" and len(paths) > 1:
            if paths[0].parent == logs and key.endswith(("logits", "losses")):
                return "float32 log"
            return "all copies" if key.endswith("logits") else ""
    return ""


def drop_from_record(logs: Path, draw: Random) -> str:
    """A key of a record."""
    _, paths = _records(logs, draw)
    for path in paths:
        change_record(path, lambda held: held.pop(draw.choice([*held])))
    return ""


def exchange_records(logs: Path, draw: Random) -> str:
    """The records of both sides, not judged again."""
    step, folder = draw.choice(STEPS), draw.choice((logs, logs / "strict"))
    first, second = (folder / f"{step}_{side}.npy" for side in SIDES)
    if first.read_bytes() == second.read_bytes():
        return "all copies"  # nothing is changed
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    return ""


def double_rates(logs: Path, draw: Random) -> str:
    """The learning rates of Step 4 on both sides, in one precision, judged again."""
    folder, factor = draw.choice((logs, logs / "strict")), draw.choice((2.0, 3.0, 0.5, 1.1))
    for side in SIDES:
        change_record(folder / f"bp_align_{side}.npy", lambda held: held.update(
            {key: value * factor for key, value in held.items() if key.startswith("lr")}))  # fmt: skip
    judge(logs, "bp_align", logs.parent / WEIGHTS)
    return ""


def forge_metric(logs: Path, draw: Random) -> str:
    """A metric of Step 2 on both sides, in one precision or both, judged again."""
    value = draw.choice((0.99, 1.0, 0.0))
    for folder in draw.choice(([logs], [logs / "strict"], [logs, logs / "strict"])):
        for side in SIDES:
            change_record(folder / f"metric_{side}.npy", lambda held: held.update(
                accuracy=held["accuracy"].dtype.type(value)))  # fmt: skip
    judge(logs, "metric", logs.parent / WEIGHTS)
    return ""


def forge_best(logs: Path, draw: Random) -> str:
    """The accuracy of Step 5 on both sides, in one precision or both, judged again."""
    value = draw.choice((0.9512, 1.0, 0.8))
    for folder in draw.choice(([logs], [logs / "strict"], [logs, logs / "strict"])):
        for side in SIDES:
            change_record(folder / f"train_align_{side}.npy", lambda held: held.update(
                acc=held["acc"].dtype.type(value)))  # fmt: skip
    judge(logs, "train_align", logs.parent / WEIGHTS)
    return ""


def _lines(logs: Path, draw: Random) -> tuple[str, Path, list[dict[str, Any]]]:
    dtype = draw.choice(("float32", "float64"))
    path = logs / "training" / f"{draw.choice(SIDES)}_{dtype}.jsonl"
    return dtype, path, [json.loads(line) for line in path.read_text().splitlines()]


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def drop_line(logs: Path, draw: Random) -> str:
    """A line of a training log, or its end."""
    _, path, rows = _lines(logs, draw)
    at = draw.randrange(len(rows))
    _write(path, rows[:at] + ([] if draw.random() < 0.3 else rows[at + 1 :]))
    return ""


def scale_losses(logs: Path, draw: Random) -> str:
    """All losses of a training log, or one."""
    dtype, path, rows = _lines(logs, draw)
    with_loss = [row for row in rows if "loss" in row]
    chosen = with_loss if draw.random() < 0.5 else [draw.choice(with_loss)]
    for row in chosen:
        row["loss"] *= draw.choice((1.5, 0.9, 1.05))
    _write(path, rows)
    late = all(row["step"] > 10 for row in chosen)
    return "float32 log" if dtype == "float32" and late else ""


def scale_rates(logs: Path, draw: Random) -> str:
    """The learning rates of a training log."""
    _, path, rows = _lines(logs, draw)
    for row in rows:
        if row.get("lr"):
            row["lr"] *= 3
    _write(path, rows)
    return ""


def renumber(logs: Path, draw: Random) -> str:
    """The steps or the epochs of a training log."""
    _, path, rows = _lines(logs, draw)
    name, by = draw.choice(("step", "epoch")), draw.choice((1, 2, 10))
    first = draw.randrange(len(rows)) if draw.random() < 0.5 else 0
    for row in rows[first:]:
        row[name] += by
    _write(path, rows)
    return ""


def empty_log(logs: Path, draw: Random) -> str:
    """A training log with nothing in it."""
    _lines(logs, draw)[1].write_text("")
    return ""


def change_result(logs: Path, draw: Random) -> str:
    """An epoch's accuracy in a training log, or those of two epochs exchanged."""
    dtype, path, rows = _lines(logs, draw)
    ends = [row for row in rows if "accuracy" in row]
    if draw.random() < 0.5:
        ends[0]["accuracy"], ends[1]["accuracy"] = ends[1]["accuracy"], ends[0]["accuracy"]
        _write(path, rows)
        return "float32 log" if dtype == "float32" else ""
    ends[-1]["accuracy"] = draw.choice((0.95, 0.85, 1.0))
    _write(path, rows)
    return ""


def exchange_training_logs(logs: Path, draw: Random) -> str:
    """The training logs of both sides."""
    dtype = draw.choice(("float32", "float64"))
    first, second = (logs / "training" / f"{side}_{dtype}.jsonl" for side in SIDES)
    texts = first.read_text(), second.read_text()
    first.write_text(texts[1])
    second.write_text(texts[0])
    return "float32 log" if dtype == "float32" else ""


def delete_file(logs: Path, draw: Random) -> str:
    """A file of the fifteen, a float64 record, or a result."""
    names = [
        path
        for path in sorted(logs.rglob("*"))
        if path.is_file() and path.parent.name != "training"
    ]
    draw.choice(names).unlink()
    return ""


def copy_side(logs: Path, draw: Random) -> str:
    """PyTorch's records over Paddle's, judged again."""
    step = draw.choice(("forward", "bp_align"))
    for folder in (logs, logs / "strict"):
        shutil.copy(folder / f"{step}_torch.npy", folder / f"{step}_paddle.npy")
    judge(logs, step, logs.parent / WEIGHTS)
    return ""


def other_run(logs: Path, draw: Random) -> str:
    """A whole step of another run."""
    step = draw.choice(STEPS)
    with TemporaryDirectory() as folder:
        other = make_submission(Path(folder), seed=1)
        for path in other.rglob(f"{step}*"):
            shutil.copy(path, logs / path.relative_to(other))
    return ""


def fake_precision(logs: Path, draw: Random) -> str:
    """A float64 record that is the float32 one, on one side or both, judged again."""
    step = draw.choice(("forward", "bp_align"))
    for side in draw.choice((("torch",), ("paddle",), SIDES)):
        narrow = dict(load_record(logs / f"{step}_{side}.npy"))
        wide = {key: array.astype("float64") if array.dtype.kind == "f" else array
                for key, array in narrow.items()}  # fmt: skip
        save_record(logs / "strict" / f"{step}_{side}.npy", wide)
    judge(logs, step, logs.parent / WEIGHTS)
    return ""


def rename_keys(logs: Path, draw: Random) -> str:
    """A key of a float32 record under another name, on one side or both; perhaps judged again."""
    step = draw.choice(("forward", "loss", "bp_align"))
    sides = draw.choice((("paddle",), SIDES))
    key = draw.choice([*load_record(logs / f"{step}_torch.npy")])
    for side in sides:
        change_record(
            logs / f"{step}_{side}.npy", lambda held: held.update({f"z{key}": held.pop(key)})
        )
    if draw.random() < 0.5:
        judge(logs, step, logs.parent / WEIGHTS)
    return ""


def rename_file(logs: Path, draw: Random) -> str:
    """A record or a log under another name."""
    names = [path for path in sorted(logs.rglob("*")) if path.suffix in (".npy", ".log")]
    path = draw.choice(names)
    path.rename(path.with_name(draw.choice((path.name.upper(), f"{path.name}.bak"))))
    return ""


def forge_benchmark(logs: Path, draw: Random) -> str:
    """A better accuracy, with a benchmark of the author's own in place of the reference's run."""
    value = np.float32(draw.choice((0.95, 0.99, 1.0)))
    change_record(logs / "train_align_paddle.npy", lambda held: held.update(acc=value))
    shutil.copy(logs / "train_align_paddle.npy", logs / "train_align_benchmark.npy")
    if draw.random() < 0.5:
        judge(logs, "train_align", logs.parent / WEIGHTS)
    return ""


KINDS: Final[tuple[Forge, ...]] = (
    change_number, change_count, change_switch, change_text, drop_from_result, exchange_results,
    change_making, change_log, exchange_logs, scale_record, drop_from_record, exchange_records,
    double_rates, forge_metric, forge_best, drop_line, scale_losses, scale_rates, renumber, empty_log,
    change_result, exchange_training_logs, delete_file, copy_side, other_run, fake_precision, rename_keys,
    rename_file, forge_benchmark,
)  # fmt: skip


def make_honest(folder: Path) -> Path:
    """Write a submission with training logs."""
    logs = make_submission(folder)
    write_training_logs(logs)
    return logs


def forge(honest: Path, folder: Path, seed: int, number: int) -> tuple[str, str, bool]:
    """Tamper with a copy; return the kind, why it may pass ("" if it may not), and whether it passed."""
    shutil.copytree(honest.parent, folder)
    logs, kind = folder / honest.name, KINDS[number % len(KINDS)]
    reason = kind(logs, Random(f"{seed} {number}"))
    try:
        passed = verify(logs).passed
    except ReprodError:
        passed = False
    return kind.__name__, reason, passed


def main(count: int, seed: int) -> int:
    """Print a table by kind; return 1 if one passes that must not."""
    rows: dict[str, Counter[str]] = {}
    with TemporaryDirectory() as place:
        honest = make_honest(Path(place) / "honest")
        if not verify(honest).passed:
            raise SystemExit(verify(honest).summary())
        for number in range(count):
            kind, reason, passed = forge(honest, Path(place) / "copy", seed, number)
            shutil.rmtree(Path(place) / "copy")
            word = "caught" if not passed else reason or "PASSED"
            rows.setdefault(kind, Counter())[word] += 1
            if word == "PASSED":
                print(f"number {number}: {kind} passed", file=sys.stderr)
    for kind, found in rows.items():
        print(f"{kind:24}", ", ".join(f"{word} {n}" for word, n in found.items()))
    print(sum(rows.values(), Counter()))
    return int(any(found["PASSED"] for found in rows.values()))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
