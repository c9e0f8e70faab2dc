"""Metric, PyTorch side: mean squared and mean absolute error of the trained model on the test part.

reads   checkpoint.pth
writes  metric_torch.npy            mse and mae, float32, and their float64 twins in strict/
pair    pd_metric.py                the same lines with Paddle's calls
"""

import informer_pt
from informer_run import Run, start
from informer_settings import DTYPES
from reprod_align import Recorder


def main(run: Run) -> None:
    """Record the metrics, once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("metric_torch", dtype))
        model = informer_pt.load_model(run, dtype)
        record.add_all(informer_pt.evaluate(model, run, "test"))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="metric_torch")
