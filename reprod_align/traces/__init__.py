"""What the modules of one run computed, on disk: recorded, read and compared."""
