"""Train the PyTorch side as a user would, with its own random numbers, for a checkpoint to convert.

writes  checkpoint.pth      the state dict, as the original saves it
"""

import informer_pt
from informer_run import Run, start
from informer_settings import SEED
from reprod_align.backends.torch import set_precision, weights_of, write_weights

import torch
import torch.nn.functional as F
from tqdm import tqdm


def main(run: Run) -> None:
    """Train in float32."""
    torch.manual_seed(SEED)
    set_precision("float32")
    model = informer_pt.build_model(run)
    optimizer = informer_pt.build_optimizer(model)
    schedule = informer_pt.build_schedule(optimizer)
    for epoch in range(run.options.epochs):
        losses = []
        for batch in tqdm(informer_pt.data_loader(run, "train", epoch), disable=None):
            loss = F.mse_loss(*informer_pt.forecast(model, batch))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        schedule.step()
        print(f"epoch {epoch + 1}: mean squared error {sum(losses) / len(losses):.4f}")
    write_weights(run.checkpoint, weights_of(model))
    print(f"wrote {run.checkpoint}")


if __name__ == "__main__":
    start(main, __doc__)
