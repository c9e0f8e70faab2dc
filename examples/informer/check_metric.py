"""Check: the same mean squared and mean absolute error?

reads   metric_torch.npy and metric_paddle.npy, and their twins in strict/
writes  metric_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(run.gate("metric", unit="entry", required=("mse", "mae"), expect_noise=True))


if __name__ == "__main__":
    start(main, __doc__, check=True)
