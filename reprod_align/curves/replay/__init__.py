"""The step before which two runs part, run again with one part swapped at a time."""
