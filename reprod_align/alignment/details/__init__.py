"""Collects what the report shows beside the findings."""
