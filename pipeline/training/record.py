"""The record of Step 5: what check_step5.py and check_native.py judge."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.run import JUDGE, Run
from pipeline.training.native import NATIVE, native_record
from pipeline.training.session import Session
from reprod_align import Recorder


def save_training(
    run: Run, session: Session, side: str, dtype: str, dev: Mapping[str, Iterable[Any]]
) -> None:
    """Record the best epoch's result; in float64 and native mode, every loss, metric and logit, too."""
    native = session.options.randomness == NATIVE
    path = native_record(run, side) if native else run.output(f"train_align_{side}", dtype)
    record = Recorder(path)
    if native:
        for name, examples in dev.items():
            record.add(f"{name}labels", [example["labels"] for example in examples])
    if native or dtype == JUDGE:
        for name, values in session.curves.items():
            record.add(name, values)
    for name, value in session.best().items():
        record.add(name, value)
    record.save()
