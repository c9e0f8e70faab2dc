"""Mutates single lines of Paddle ports and asks whether `align` names module, line and cause.

python -m benchmarks.mutants [--sample N] [--file NAME ...] [--json OUT]
"""
