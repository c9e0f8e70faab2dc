"""What the user's code may overwrite and ours cannot do without, put back when that code is done."""

import builtins
import sys


class Intact:
    """Puts back, when the block ends, every builtin and the streams that it overwrote or deleted.

    What the block added stays. A class, since contextlib's managers need builtins to end.
    """

    def __enter__(self) -> None:
        """Keep what is there."""
        self._names = builtins.__dict__
        self._builtins = dict(self._names)
        self._sys, self._streams = sys, (sys.stdin, sys.stdout, sys.stderr)

    def __exit__(self, *ignored: object) -> None:
        """Put it back; by no name that is looked up among the builtins."""
        self._names.update(self._builtins)
        self._sys.stdin, self._sys.stdout, self._sys.stderr = self._streams
