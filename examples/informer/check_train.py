"""Check: do both sides learn the same, step by step?

reads   train_torch.npy and train_paddle.npy, and their twins in strict/
writes  train_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(run.gate("train", unit="entry", required=("mse", "mae"), threshold=1e-4))


if __name__ == "__main__":
    start(main, __doc__, check=True)
