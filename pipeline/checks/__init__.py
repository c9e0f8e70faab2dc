"""What a check compares, and what it says when the two sides differ."""
