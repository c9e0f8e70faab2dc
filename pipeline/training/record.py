"""The record of Step 5: what check_step5.py and check_native.py judge."""

from collections.abc import Iterable, Mapping
from typing import Any

from pipeline.settings import STRICT_DTYPE
from pipeline.training.native import NATIVE, native_record
from pipeline.training.session import Session
from reprod_align import Recorder


def save_training(session: Session, dev: Mapping[str, Iterable[Any]]) -> None:
    """Record the best epoch's result and print it, in the first process.

    In float64 and native mode the record also holds every loss, metric and logit.
    """
    if session.processes.rank:
        return
    run, (side, dtype) = session.run, session.name.parts
    native = session.options.randomness == NATIVE
    record = Recorder(
        native_record(run, side) if native else run.output(f"train_align_{side}", dtype)
    )
    if native:
        for name, examples in dev.items():
            record.add(f"{name}labels", [example["labels"] for example in examples])
    if native or dtype == STRICT_DTYPE:
        record.add_all(session.curves)
    record.add_all(session.best())
    record.save()
    print(f"{side} {dtype}: best {run.task.main_metric} {max(session.results):.4f}")
