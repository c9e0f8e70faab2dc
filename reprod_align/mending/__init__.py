"""Mends a port: looks for the edit of its source with which a difference is gone, and proves it."""
