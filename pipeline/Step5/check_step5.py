"""Step 5 check: does the port learn as well, and the same, step by step?

reads   log_reprod/train_align_torch.npy, train_align_paddle.npy, and their twins in strict/
writes  log_reprod/train_align_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from pipeline import settings
from pipeline.checks.gate import build_gate
from pipeline.checks.outputs import add_options, judge
from pipeline.run import Run, start
from pipeline.training.measures import official


def main(run: Run) -> int:
    """Judge accuracies, or the task's metrics, by the guide's threshold; the float64 curves strictly."""
    scripts = ("pipeline/Step5/pt_train.py", "pipeline/Step5/pd_train.py")
    threshold = settings.ACCURACY_THRESHOLD
    return judge(
        run,
        build_gate(
            run,
            "train_align",
            scripts,
            threshold=threshold,
            unit="entry",
            expect_noise=True,
            required=[official(name) for name in run.task.metric_names],
            stage="training" if run.task.num_labels == settings.NUM_LABELS else None,
        ),
    )


if __name__ == "__main__":
    start(main, __doc__, add_options)
