"""Every figure of docs/benchmarks.md: measured, as ratios of medians within one run, and written there.

`python -m benchmarks.figures [GROUP ...]` (`make bench ROWS=compare`). A group is a module here with TITLE,
ROWS, CURVES and `prepare(folder)`, and a line in `GROUPS` of `__main__`.
"""
