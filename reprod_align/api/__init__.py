"""Where PyTorch and Paddle differ, as running code: one source for the table, `audit` and the causes.

Importing it imports neither framework. `table` has the entries, `running` runs them.
"""
