"""What the compared runs do not show by themselves: said, or shown by runs of its own."""
