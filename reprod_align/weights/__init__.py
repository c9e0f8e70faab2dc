"""Weights from PyTorch's layout to Paddle's, by the type of the layer that owns them."""
