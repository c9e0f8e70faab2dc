"""Further batches, made from the one that is given, and what the two sides do with them."""
