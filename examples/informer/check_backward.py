"""Check: the same losses, gradients, learning rates and updated parameters?

reads   backward_torch.npy and backward_paddle.npy, and their twins in strict/
writes  backward_diff.log, and what --report, --markdown and --junit ask for
exit    0 aligned, 1 different, 2 cannot be compared
"""

from informer_run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    return run.judge(
        run.gate("backward", unit="value", required=("loss_0", "lr_0"), expect_noise=True)
    )


if __name__ == "__main__":
    start(main, __doc__, check=True)
