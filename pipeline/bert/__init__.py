"""Hugging Face checkpoints of BERT: read, exported, converted."""
