"""Settings and steps of the two optimizers and schedules, compared."""
