"""How two records are compared: one pair passes, one fails, and so the check fails.

reads   log_reprod/demo/result_1.npy, result_2.npy
writes  log_reprod/demo/demo_diff.log
exit    1 always: demo_test_2 differs; 2 if the records are missing
"""

from pipeline.run import Run, start
from reprod_align import Gate, check


def main(run: Run) -> int:
    """Compare what write_log.py wrote."""
    folder = run.home / "log_reprod" / "demo"
    pair = folder / "result_1.npy", folder / "result_2.npy"
    first_run = run.command("pipeline/reprod_log_demo/write_log.py")
    log = folder / "demo_diff.log"
    return check(Gate("demo", official=pair, strict=pair, log=log, first_run=first_run))


if __name__ == "__main__":
    start(main, __doc__)
