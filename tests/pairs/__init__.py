"""Model pairs, faithful and broken, that `align` is held against."""
