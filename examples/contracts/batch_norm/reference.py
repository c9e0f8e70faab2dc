"""The reference: BatchNorm2d with statistics and weights away from their constants."""

import torch


def torch_model():
    """Return the layer."""
    torch.manual_seed(0)
    model = torch.nn.BatchNorm2d(4)
    model.running_mean.normal_()
    model.running_var.uniform_(0.5, 2)
    with torch.no_grad():
        model.weight.normal_()
        model.bias.normal_()
    return model
