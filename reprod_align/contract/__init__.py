"""A contract that a port's author cannot loosen, and its proof: `reprod-align prove`."""
