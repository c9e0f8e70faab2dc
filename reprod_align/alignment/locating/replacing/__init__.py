"""Runs the port with a part of its code changed: what mends a fault is what was wrong."""
