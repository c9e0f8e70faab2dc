"""Source of a model as text: what could stand in its place, and a run with it."""
