"""One side of a pair: a model, its settings, and the trace of what it computes."""
