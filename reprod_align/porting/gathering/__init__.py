"""One file out of a package: what the model needs from its own module and from its neighbours."""
