"""Masks and indices: who made them, and whether they have an effect."""
