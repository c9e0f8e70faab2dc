"""Check: do both sides learn the same, step by step?

reads   train_torch.npy and train_paddle.npy, and their twins in strict/
writes  train_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start
from reprod_align import check


def main(run: Run) -> int:
    """Judge the two records."""
    return check(run.gate("train", unit="entry", required=("mse", "mae"), threshold=1e-4))


if __name__ == "__main__":
    start(main, __doc__)
