"""Step 1 check: do both sides compute the same logits, layer by layer?

reads   log_reprod/forward_torch.npy, forward_paddle.npy, and their twins in strict/
writes  log_reprod/forward_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from pipeline.checks import add_options, build_gate, judge
from pipeline.run import Run, start


def main(run: Run) -> int:
    """Judge the two records."""
    scripts = ("pipeline/Step1/pt_forward_bert.py", "pipeline/Step1/pd_forward_bert.py")
    gate = build_gate(
        run,
        "forward",
        scripts,
        unit="layer",
        expect_noise=True,
        required=["logits"],
        stage="forward",
    )
    return judge(run, gate)


if __name__ == "__main__":
    start(main, __doc__, add_options)
