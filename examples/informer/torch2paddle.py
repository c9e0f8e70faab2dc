"""Convert the checkpoint for the Paddle side, show every tensor, and prove it by a forward pass.

reads   checkpoint.pth              written by pt_checkpoint.py, or by the original's own training
writes  model_state.pdparams
"""

from dataclasses import replace

import informer_pd
import informer_pt
from informer_run import Run, start
from informer_settings import STRICT_DTYPE
from reprod_align import STRICT, compare_records
from reprod_align.backends import paddle as pd_backend
from reprod_align.backends import torch as pt_backend
from reprod_align.errors import WeightsError
from reprod_align.weights.convert import Row, convert

from tabulate import tabulate

# Paddle's names of batch norm's statistics; PyTorch's counter of batches has no counterpart
PADDLE_NAMES = {"running_mean": "_mean", "running_var": "_variance"}
COUNTER = "num_batches_tracked"


def main(run: Run) -> None:
    """Convert, compare both models' forecasts in float64, and only then write."""
    weights = pt_backend.read_weights(run.require(run.checkpoint, "pt_checkpoint.py"))
    rows = convert_weights(run, weights)
    print(tabulate([row.cells() for row in rows], headers=Row.HEADERS, disable_numparse=True))
    difference = verify(run, weights, rows)
    pd_backend.write_weights(run.paddle_weights, {row.paddle_name: row.paddle for row in rows})
    print(f"wrote {run.paddle_weights}: {len(rows)} tensors")
    print(f"the forecasts of both models agree to {difference:.1e} (float64, relative)")


def convert_weights(run: Run, weights: dict) -> list[Row]:
    """Return every tensor, converted; WeightsError if the checkpoint is of another model."""
    layout = pt_backend.layout(informer_pt.build_model(run))
    shapes = {name: shape for name, shape in layout.shapes.items() if not name.endswith(COUNTER)}
    kept = {name: array for name, array in weights.items() if not name.endswith(COUNTER)}
    paddle_layout = pd_backend.layout(informer_pd.build_model(run))
    return convert(kept, replace(layout, shapes=shapes), paddle_layout, paddle_name)


def paddle_name(name: str) -> str:
    """Return what Paddle calls a tensor."""
    owner, _, last = name.rpartition(".")
    return f"{owner}.{PADDLE_NAMES.get(last, last)}"


def verify(run: Run, weights: dict, rows: list[Row]) -> float:
    """Return the relative difference of the two models' forecasts; WeightsError if it is too large."""
    found = []
    for side, backend in ((informer_pt, pt_backend), (informer_pd, pd_backend)):
        backend.set_precision(STRICT_DTYPE)
        model = side.build_model(run)
        own = weights if side is informer_pt else {row.paddle_name: row.paddle for row in rows}
        backend.load_weights(model, own)
        model.eval()
        with side.share_draws(0, 0):
            output, _ = side.forecast(model, side.to_tensors(run.first_batch()))
        found.append({"forecast": output.detach().numpy()})
    comparison = compare_records(*found, rule=STRICT)
    if not comparison.passed:
        raise WeightsError(f"the converted weights give another result: {comparison.reason}")
    return comparison.results[0].difference.max_rel


if __name__ == "__main__":
    start(main, __doc__)
