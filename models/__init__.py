"""Simplified, readable twins of the models to align: `pt_*` in PyTorch, `pd_*` in Paddle."""
