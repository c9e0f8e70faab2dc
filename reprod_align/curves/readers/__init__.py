"""Training logs of every format, read as curves."""
