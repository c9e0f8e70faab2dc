"""Twins in the style of research files: `pt_NAME` has `make` and `inputs`, `pd_NAME` has `make`.

They are written by hand as one writes such files, each side in its own way where the frameworks differ.
"""
