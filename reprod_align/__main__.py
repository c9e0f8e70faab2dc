"""`python -m reprod_align`: the command line, where the script `reprod-align` is not on the path."""

import sys

from reprod_align.commands import main

if __name__ == "__main__":
    sys.exit(main())
