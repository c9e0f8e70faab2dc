"""From a difference to the lines of source: where the user's code calls, and where it makes a layer."""
