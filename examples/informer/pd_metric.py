"""Metric, Paddle side: mean squared and mean absolute error of the trained model on the test part.

reads   model_state.pdparams
writes  metric_paddle.npy           mse and mae, float32, and their float64 twins in strict/
pair    pt_metric.py                the same lines with PyTorch's calls
"""

import informer_pd
from informer_run import Run, start
from informer_settings import DTYPES
from reprod_align import Recorder


def main(run: Run) -> None:
    """Record the metrics, once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("metric_paddle", dtype))
        model = informer_pd.load_model(run, dtype)
        record.add_all(informer_pd.evaluate(model, run, "test"))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="metric_paddle")
