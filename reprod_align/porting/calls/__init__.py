"""Every call of PyTorch's is proven where it stands: recorded, tried on Paddle, and written."""
