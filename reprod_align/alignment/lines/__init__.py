"""From a module at fault to the two lines of source, PyTorch's and Paddle's, that make the difference."""
