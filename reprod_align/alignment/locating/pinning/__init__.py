"""Runs the port on the reference's numbers, call by call, where both sides have the same boundaries."""
