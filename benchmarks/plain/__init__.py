"""The five steps as a reader of the guide writes them: one script a side and step, and
reprod_log's check after both.

`python -m benchmarks.plain HOME DATA` runs all of them, one after another. `pt.py` and `pd.py` are twins.
"""
