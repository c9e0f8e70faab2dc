"""How a submission can be tampered with: what is done, the kind of fault, and words of its line."""

import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.submission.making import WEIGHTS, Record, change_record, edit_json, judge, replace

import numpy as np


def delete(name: str) -> Callable[[Path], None]:
    return lambda logs: (logs / name).unlink()


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda logs: replace(logs / name, old, new)


def check_again(step: str, change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Tamper with records and let the check judge them anew, so that log and arrays agree."""

    def work(logs: Path) -> None:
        change(logs)
        judge(logs, step, logs.parent / WEIGHTS)

    return work


def copy(old: str, new: str) -> Callable[[Path], None]:
    def work(logs: Path) -> None:
        shutil.copy(logs / old, logs / new)

    return work


def change(name: str, work: Callable[[Record], None]) -> Callable[[Path], None]:
    return lambda logs: change_record(logs / name, work)


def both(step: str, change: Callable[[Record], None]) -> Callable[[Path], None]:
    """Change both sides of a step, in both precisions."""

    def work(logs: Path) -> None:
        for folder in (logs, logs / "strict"):
            for side in ("torch", "paddle"):
                change_record(folder / f"{step}_{side}.npy", change)

    return work


def set_nan(record: Record) -> None:
    record["logits"][0, 0] = np.nan


def set_zero(record: Record) -> None:
    record["logits"] *= 0


def set_accuracy(record: Record) -> None:
    record["acc"] = np.float64(0.898)


def transpose(record: Record) -> None:
    record["logits"] = record["logits"].T


def scale_loss(factor: float) -> Callable[[Record], None]:
    return lambda record: record.update(loss=record["loss"] * factor)


def edit_verdict(logs: Path) -> None:
    edit_json(logs / "strict/loss_diff.json", lambda value: value.update(passed=False))


def keep_one_loss(record: Record) -> None:
    for key in [key for key in record if key != "loss_0"]:
        del record[key]


def keep_inputs(record: Record) -> None:
    del record["logits"]


def forge_pass(logs: Path) -> None:
    """Let a wrong port's log, and the verdict beside it, say that all passed."""
    change_record(
        logs / "forward_paddle.npy", lambda record: record.update(logits=record["logits"] + 1)
    )
    log = logs / "forward_diff.log"
    judge(logs, "forward", logs.parent / WEIGHTS)
    text = log.read_text().replace("False", "True").replace("check failed", "check passed")
    lines = [line.partition("FAILED: official")[0] for line in text.splitlines()]
    log.write_text("\n".join(lines[:-1] + [lines[-1] + "passed"]))
    edit_json(
        logs / "strict" / "forward_diff.json", lambda value: value.update(passed=True, reason="")
    )


class Hostile:
    """Pickled, it asks to be unpickled by a call of print."""

    def __reduce__(self) -> Any:
        return print, ("it ran",)


def run_code(logs: Path) -> None:
    head = (logs / "loss_torch.npy").read_bytes()[:128]
    (logs / "loss_torch.npy").write_bytes(head + pickle.dumps(Hostile(), protocol=4))


def truncate(name: str) -> Callable[[Path], None]:
    def work(logs: Path) -> None:
        data = (logs / name).read_bytes()
        (logs / name).write_bytes(data[: len(data) // 2])

    return work


def write_plain_array(logs: Path) -> None:
    np.save(logs / "metric_torch.npy", np.zeros(3))


TAMPERED: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a record is missing": (delete("loss_paddle.npy"), "missing", "loss_paddle.npy"),
    "the reference's training is missing": (
        delete("train_align_torch.npy"),
        "missing",
        "train_align_torch.npy or train_align_benchmark.npy",
    ),
    "a log is missing": (
        delete("bp_align_diff.log"),
        "missing",
        "bp_align_diff.log or bp_align_diff_log.txt",
    ),
    "a twin is missing": (delete("strict/loss_torch.npy"), "missing", "strict/loss_torch.npy"),
    "a value in a log": (edit("loss_diff.log", "value: ", "value: 1"), "edited", "recomputed"),
    "a pass in a log": (
        edit("loss_diff.log", "passed: True", "passed: False"),
        "edited",
        "recomputed: it passes",
    ),
    "a wrong port, its log and verdict forged": (forge_pass, "failed", "forward: official"),
    "a forged log": (forge_pass, "edited", "says that logits passed"),
    "the last line of a log": (
        edit("metric_diff.log", "reprod_align: passed", "reprod_align: FAILED: x"),
        "edited",
        "ends with",
    ),
    "a key's lines in a log": (
        edit("forward_diff.log", "logits: \n", "scores: \n"),
        "edited",
        "says nothing about logits",
    ),
    "a strict line": (
        edit("loss_diff.log", "strict loss: passed True, max", "strict loss: passed True, maximum"),
        "edited",
        "lacks the line",
    ),
    "a log cut short": (truncate("bp_align_diff.log"), "edited", "says nothing about"),
    "another step's log": (
        copy("loss_diff.log", "metric_diff.log"),
        "edited",
        "says nothing about accuracy",
    ),
    "a log that is not a text": (
        lambda logs: (logs / "loss_diff.log").write_bytes(b"\xff\xfe\x00"),
        "damaged",
        "not a text",
    ),
    "an array changed after its check": (
        change("loss_paddle.npy", scale_loss(1 + 3e-7)),
        "edited",
        "not the file that strict/loss_diff.json judged",
    ),
    "the verdict as JSON": (edit_verdict, "edited", "says passed: False"),
    "broken JSON": (
        lambda logs: (logs / "strict/loss_diff.json").write_text("[" * 10**5),
        "damaged",
        "not JSON",
    ),
    "PyTorch's forward record over Paddle's": (
        check_again("forward", copy("forward_torch.npy", "forward_paddle.npy")),
        "suspicious",
        "bit-identical",
    ),
    "PyTorch's losses over Paddle's": (
        check_again("bp_align", copy("bp_align_torch.npy", "bp_align_paddle.npy")),
        "suspicious",
        "bp_align: all 10",
    ),
    "PyTorch's float64 record over Paddle's": (
        check_again("metric", copy("strict/metric_torch.npy", "strict/metric_paddle.npy")),
        "suspicious",
        "strict/metric",
    ),
    "PyTorch's loss over Paddle's, not checked again": (
        copy("loss_torch.npy", "loss_paddle.npy"),
        "edited",
        "not the file",
    ),
    "a NaN on both sides": (
        check_again("forward", both("forward", set_nan)),
        "failed",
        "not finite",
    ),
    "zeros on both sides": (
        check_again("forward", both("forward", set_zero)),
        "failed",
        "every number is zero",
    ),
    "inputs alone": (
        check_again("forward", both("forward", keep_inputs)),
        "failed",
        "no computed numbers",
    ),
    "one loss": (check_again("bp_align", both("bp_align", keep_one_loss)), "failed", "1 loss"),
    "empty records": (
        check_again("loss", both("loss", dict.clear)),
        "failed",
        "nothing to compare",
    ),
    "an accuracy out of reach": (
        check_again("train_align", change("train_align_paddle.npy", set_accuracy)),
        "failed",
        "train_align: official",
    ),
    "a transposed output": (
        check_again("forward", change("forward_paddle.npy", transpose)),
        "failed",
        "transposed",
    ),
    "code in a record": (run_code, "damaged", "asks to run"),
    "half a record": (truncate("forward_torch.npy"), "damaged", "truncated"),
    "a plain array": (write_plain_array, "damaged", "plain array"),
    "the losses of another batch": (
        check_again("loss", both("loss", scale_loss(1.01))),
        "different runs",
        "should be one number",
    ),
}
