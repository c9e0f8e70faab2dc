"""Tries what names and shapes leave open: the numbers decide."""
