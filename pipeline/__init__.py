"""The staged pipeline: what its scripts share. Importing it quietens the libraries (see `quiet`)."""

from pipeline import quiet

quiet.quieten()
