"""Check: do both DataLoaders yield the same batches, in the same order?

reads   strict/data_torch.npy and data_paddle.npy
writes  data_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(run.gate("data", exact=True, unit="entry", required=("train_windows",)))


if __name__ == "__main__":
    start(main, __doc__, check=True)
