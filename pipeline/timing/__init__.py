"""Step 5's speed: what is timed, the rounds and their comparison."""
