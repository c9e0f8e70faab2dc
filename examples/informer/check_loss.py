"""Check: the same losses, with dropout?

reads   loss_torch.npy and loss_paddle.npy, and their twins in strict/
writes  loss_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(run.gate("loss", unit="loss", required=("loss",)))


if __name__ == "__main__":
    start(main, __doc__, check=True)
