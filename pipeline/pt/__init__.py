"""What the pt_* scripts share. pipeline/pd is its twin, file by file."""
