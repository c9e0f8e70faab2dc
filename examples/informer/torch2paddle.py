"""Convert the checkpoint for the Paddle side, show every tensor, and prove it by a forward pass.

reads   checkpoint.pth              written by pt_checkpoint.py, or by the original's own training
writes  model_state.pdparams

The map follows from the two models, as align pairs them: no name is written here.
"""

from informer_run import Run, start
from pair_informer import inputs, paddle_model, torch_model
from reprod_align.base.text import shorten
from reprod_align.conversion import Conversion, convert
from reprod_align.conversion.weight_map import ModelPair
from reprod_align.errors import WeightsError
from reprod_align.pair import paddle_side, torch_side


def main(run: Run) -> None:
    """Convert, compare both models' forecasts in float64, and only then write."""
    checkpoint = run.require(run.checkpoint, "pt_checkpoint.py")
    pair = ModelPair(torch_side(torch_model(run)), paddle_side(paddle_model(run)), inputs(run))
    done = convert(Conversion(checkpoint, run.paddle_weights), pair)
    if done.faults:
        raise WeightsError(f"the weights do not fit the model: {shorten(done.faults, 8, '; ')}")
    print(done.summary())
    if not done.passed:
        raise WeightsError("the converted weights give another forecast")


if __name__ == "__main__":
    start(main, __doc__)
