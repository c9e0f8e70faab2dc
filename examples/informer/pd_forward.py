"""Forward pass, Paddle side: the forecast of the trained model on the first windows of the test part.

reads   model_state.pdparams
writes  forward_paddle.npy          the forecast, float32
        strict/forward_paddle.npy   the same in float64, and the outputs of the layers
pair    pt_forward.py               the same lines with PyTorch's calls
"""

import informer_pd
from informer_run import Run, start
from informer_settings import DTYPES, STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.paddle import layer_outputs

import paddle


def main(run: Run) -> None:
    """Record the forecast, once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("forward_paddle", dtype))
        model = informer_pd.load_model(run, dtype)  # eval mode: no dropout, but sampled keys
        batch = informer_pd.to_tensors(run.first_batch())
        with paddle.no_grad(), layer_outputs(model, run.layer_names) as layers:
            with informer_pd.share_draws(0, 0):
                output, _ = informer_pd.forecast(model, batch)  # (B, out_len, 7)
        if dtype == STRICT_DTYPE:
            record.add_all(layers)
        record.add("forecast", output)
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="forward_paddle")
