"""Step 3 check: do both sides compute the same losses?

reads   log_reprod/loss_torch.npy, loss_paddle.npy, and their twins in strict/
writes  log_reprod/loss_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from pipeline.checks import add_options, build_gate, judge
from pipeline.run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    scripts = ("pipeline/Step3/pt_loss.py", "pipeline/Step3/pd_loss.py")
    return judge(
        run, build_gate(run, "loss", scripts, unit="loss", required=["loss"], stage="loss")
    )


if __name__ == "__main__":
    start(main, __doc__, add_options)
