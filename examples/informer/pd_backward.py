"""Backward pass, Paddle side: ten Adam iterations on one batch, in eval mode.

reads   model_state.pdparams
writes  backward_paddle.npy         loss and learning rate of each iteration, float32
        strict/backward_paddle.npy  the same in float64, every gradient and every updated value
pair    pt_backward.py              the same lines with PyTorch's calls
"""

import informer_pd
from informer_run import Run, start
from informer_settings import DTYPES, ITERATIONS, STRICT_DTYPE
from reprod_align import Recorder
from reprod_align.backends.paddle import gradients, parameters
from reprod_align.traces.sketch import sketch_backwards

import paddle.nn.functional as F


def main(run: Run) -> None:
    """Train once in each precision; the rate is halved after every third iteration."""
    for dtype in DTYPES:
        record = Recorder(run.output("backward_paddle", dtype))
        model = informer_pd.load_model(run, dtype)
        optimizer = informer_pd.build_optimizer(model)
        schedule = informer_pd.build_schedule(optimizer)
        batch = informer_pd.to_tensors(run.first_batch())
        for iteration in range(ITERATIONS):
            with informer_pd.share_draws(0, iteration):
                loss = F.mse_loss(*informer_pd.forecast(model, batch))
            loss.backward()
            record.add(f"loss_{iteration}", loss)
            record.add(f"lr_{iteration}", schedule.get_lr())
            if dtype == STRICT_DTYPE:
                record.add_all(sketch_backwards(f"gradient_{iteration}", gradients(model)))
            optimizer.step()
            optimizer.clear_grad()
            if iteration % 3 == 2:
                schedule.step()
            if dtype == STRICT_DTYPE:
                record.add_all(sketch_backwards(f"parameter_{iteration}", parameters(model)))
        record.save()


if __name__ == "__main__":
    start(main, __doc__, writes="backward_paddle")
