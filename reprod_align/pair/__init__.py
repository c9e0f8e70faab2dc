"""The two sides of a pair: made from models, from a file, or from two interpreters."""
