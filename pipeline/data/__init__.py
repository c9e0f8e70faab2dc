"""The sentences of Steps 2 and 5: built in, from files or from the hub."""
