"""Check: do both sides forecast the same, layer by layer?

reads   forward_torch.npy and forward_paddle.npy, and their twins in strict/
writes  forward_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(run.gate("forward", unit="layer", required=("forecast",), expect_noise=True))


if __name__ == "__main__":
    start(main, __doc__, check=True)
