"""Step 4 check: the same learning rates, losses, gradients and updated parameters?

reads   log_reprod/strict/lr_torch.npy, lr_paddle.npy
        log_reprod/bp_align_torch.npy, bp_align_paddle.npy, and their twins in strict/
writes  log_reprod/lr_diff.log, bp_align_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from pipeline.checks import add_options, build_gate, judge
from pipeline.run import Run, start
from pipeline.settings import BP_ITERATIONS


def main(run: Run) -> int:
    """Judge the learning rates, which must agree exactly, and the iterations."""
    lr_scripts = ("pipeline/Step4/pt_lr_scheduler.py", "pipeline/Step4/pd_lr_scheduler.py")
    bp_scripts = ("pipeline/Step4/pt_bp.py", "pipeline/Step4/pd_bp.py")
    lr_gate = build_gate(run, "lr", lr_scripts, exact=True, unit="schedule", required=["linear"])
    losses = [f"loss_{iteration}" for iteration in range(BP_ITERATIONS)]
    bp_gate = build_gate(
        run,
        "bp_align",
        bp_scripts,
        unit="value",
        expect_noise=True,
        required=losses,
        stage="training",
    )
    return judge(run, lr_gate, bp_gate)


if __name__ == "__main__":
    start(main, __doc__, add_options)
