"""Step 2 check: the same data, and the same metrics on it?

reads   log_reprod/strict/data_torch.npy, data_paddle.npy
        log_reprod/metric_torch.npy, metric_paddle.npy, and their twins in strict/
writes  log_reprod/data_diff.log, metric_diff.log
exit    0 aligned, 1 different, 2 cannot be compared
"""

from pipeline.checks import add_options, build_gate, judge
from pipeline.run import Run, start
from pipeline.tasks import SST2

SST2_METRICS = ("accuracy", "precision", "recall", "f1", "auc")


def main(run: Run) -> int:
    """Judge the data first: metrics on other data would say nothing."""
    data_scripts = ("pipeline/Step2/pt_data.py", "pipeline/Step2/pd_data.py")
    metric_scripts = ("pipeline/Step2/pt_metric.py", "pipeline/Step2/pd_metric.py")
    metrics = SST2_METRICS if run.task is SST2 else run.task.metric_names
    data_gate = build_gate(run, "data", data_scripts, exact=True, unit="entry", required=["length"])
    metric_gate = build_gate(
        run,
        "metric",
        metric_scripts,
        unit="entry",
        expect_noise=True,
        required=metrics,
        required_twin="batch_0_logits",
    )
    return judge(run, data_gate, metric_gate)


if __name__ == "__main__":
    start(main, __doc__, add_options)
