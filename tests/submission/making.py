"""An honest submission of small made-up records, which the tests then tamper with."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reprod_align.records import load_record, save_record
from reprod_align.records.gate import Gate, check

import numpy as np

Record = dict[str, Any]
THRESHOLDS = {"train_align": 0.0015}
WEIGHTS = "weights/weights.bin"
STEPS = ("forward", "metric", "loss", "bp_align", "train_align")


def make_submission(
    folder: Path, seed: int = 0, **changes: Callable[[Record, Record], None]
) -> Path:
    """Write a whole log_reprod/ below `folder` and return it; changes: of a step's two float32 records."""
    logs, weights = folder / "log_reprod", folder / WEIGHTS
    weights.parent.mkdir(parents=True)
    weights.write_bytes(bytes([seed]))
    for name, exact in make_values(seed).items():
        write_step(logs, name, exact, weights, changes.get(name))
    return logs


def make_values(seed: int) -> dict[str, Record]:
    """Return what one side computes in each step, in float64."""
    draw = np.random.default_rng(seed)
    logits, labels = draw.standard_normal((4, 2)), np.array([0, 1, 1, 0])
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    loss = -np.log(chances[np.arange(4), labels]).mean()
    losses = (
        loss
        * np.exp(-0.1 * np.arange(10))
        * (1 + 0.01 * draw.standard_normal(10) * (np.arange(10) > 0))
    )
    rates = {f"lr_{step}": 3e-5 * (1 - step / 10) for step in range(10)}
    return {
        "forward": {
            "fake_data": draw.integers(0, 99, (4, 8)),
            "fake_label": labels,
            "logits": logits,
        },
        "metric": make_metric(draw.standard_normal((8, 2)), draw.integers(0, 2, 8)),
        "loss": {"loss": loss, "label_smoothing": loss * 1.1},
        "bp_align": {f"loss_{step}": value for step, value in enumerate(losses)} | rates,
        "train_align": {
            "acc": 0.9,
            **{f"epoch_{epoch}_losses": draw.uniform(0.1, 1, 6) for epoch in (0, 1)},
            **{f"epoch_{epoch}_logits": draw.standard_normal((10, 2)) for epoch in (0, 1)},
            "epoch_0_accuracy": 0.8,
            "epoch_1_accuracy": 0.9,
        },
    }


def make_metric(logits: Any, labels: Any) -> Record:
    """Return the metrics of logits (8, 2) and labels (8,), and what they are made of."""
    chosen = logits.argmax(1)
    counts = {
        "true_positives": ((chosen == 1) & (labels == 1)).sum(),
        "false_positives": ((chosen == 1) & (labels == 0)).sum(),
        "false_negatives": ((chosen == 0) & (labels == 1)).sum(),
    }
    accuracy = float((chosen == labels).mean())
    return {"accuracy": accuracy, "batch_0_logits": logits, "batch_0_labels": labels, **counts}


def write_step(
    logs: Path,
    name: str,
    exact: Record,
    weights: Path,
    change: Callable[[Record, Record], None] | None = None,
) -> None:
    """Write a step's records, which differ by rounding, and let the check judge them."""
    pairs = []
    for place, dtype in ((logs, np.float32), (logs / "strict", np.float64)):
        sides = tuple(
            {key: _round(key, value, dtype, step) for key, value in exact.items()}
            for step in (0, 1)
        )
        if change is not None:
            change(*sides)
        pairs.append(tuple(save_record(place / f"{name}_{side}.npy", record)
                           for side, record in zip(("torch", "paddle"), sides, strict=True)))  # fmt: skip
    judge(logs, name, weights)


def _round(key: str, value: Any, dtype: type, ulps: int) -> Any:
    """Return `value` in a precision, and on the second side off by one unit in the last place."""
    array = np.asarray(value)
    if array.dtype.kind != "f" or key.startswith("lr") or key.endswith(("acc", "accuracy")):
        return array.astype(dtype) if array.dtype.kind == "f" else array
    array = array.astype(dtype)
    return np.nextafter(array, dtype(10)) if ulps else array


def write_training_logs(logs: Path) -> None:
    """Write the logs of a submission's trainings: of every step in float64, of every second in float32."""
    (logs / "training").mkdir()
    for side in ("torch", "paddle"):
        record = load_record(logs / "strict" / f"train_align_{side}.npy")
        for dtype, stride in (("float32", 2), ("float64", 1)):
            rows: list[Record] = []
            step = 0
            for epoch in (0, 1):
                for loss in record[f"epoch_{epoch}_losses"].tolist():
                    step += 1
                    rate = 3e-5 * (1 - step / 12)
                    line = {"step": step, "epoch": epoch, "loss": loss, "lr": rate}
                    rows += [line] if step % stride == 0 else []
                accuracy = float(record[f"epoch_{epoch}_accuracy"])
                rows.append({"step": step, "epoch": epoch, "accuracy": accuracy})
            text = "".join(f"{json.dumps(row)}\n" for row in rows)
            (logs / "training" / f"{side}_{dtype}.jsonl").write_text(text)


def judge(logs: Path, name: str, weights: Path) -> int:
    """Run the step's check, as check_stepN.py does."""
    official = (logs / f"{name}_torch.npy", logs / f"{name}_paddle.npy")
    strict = (logs / "strict" / official[0].name, logs / "strict" / official[1].name)
    gate = Gate(
        name,
        official=official,
        strict=strict,
        log=logs / f"{name}_diff.log",
        first_run="the scripts",
        threshold=THRESHOLDS.get(name, 1e-6),
        sources=((weights,), (weights,)),
    )
    return check(gate)


def change_record(path: Path, change: Callable[[Record], None]) -> None:
    """Change a record in its file."""
    record = dict(load_record(path))
    change(record)
    save_record(path, record)


def replace(path: Path, old: str, new: str) -> None:
    """Replace a text in a file; it must be there."""
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """Change a JSON file."""
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
