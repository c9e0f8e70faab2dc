"""Forward pass, PyTorch side: the forecast of the trained model on the first windows of the test part.

reads   checkpoint.pth
writes  forward_torch.npy           the forecast, float32
        strict/forward_torch.npy    the same in float64, and the outputs of the layers
pair    pd_forward.py               the same lines with Paddle's calls
"""

import informer_pt
from informer_run import Run, start
from informer_settings import DTYPES, STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.torch import layer_outputs

import torch


def main(run: Run) -> None:
    """Record the forecast, once in each precision."""
    for dtype in DTYPES:
        record = Recorder(run.output("forward_torch", dtype))
        model = informer_pt.load_model(run, dtype)  # eval mode: no dropout, but sampled keys
        batch = informer_pt.to_tensors(run.first_batch())
        with torch.no_grad(), layer_outputs(model, run.layer_names) as layers:
            with informer_pt.share_draws(0, 0):
                output, _ = informer_pt.forecast(model, batch)  # (B, out_len, 7)
        if dtype == STRICT_DTYPE:
            record.add_all(layers)
        record.add("forecast", output)
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="forward_torch")
