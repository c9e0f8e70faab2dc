"""A submission: the guide's five steps as files, packed by one person and verified by another."""
