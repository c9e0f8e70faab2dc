"""Judges a port that runs on several ranks of `paddle.distributed.fleet` against one PyTorch process."""
