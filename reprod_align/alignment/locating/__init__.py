"""Which module makes a difference: every module of the port on the reference's numbers."""
