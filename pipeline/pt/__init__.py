"""What the pt_* scripts share. pipeline/pd is its twin, file by file."""

SIDE = "torch"  # in the names of this side's records
