"""Further batches, derived from the one that is given."""
