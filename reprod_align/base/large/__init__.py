"""Large arrays: files that are read without a copy in memory, and work on all cores."""
