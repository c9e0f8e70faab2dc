"""Model files in the style of research repositories, for `benchmarks.ports`."""
