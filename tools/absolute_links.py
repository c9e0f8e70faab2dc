"""Prints a page with its links into the repository made absolute, for a place that holds the page alone.

python tools/absolute_links.py README.md https://github.com/OWNER/NAME/blob/v1.2.0 > page.md
"""

import re
import sys
from pathlib import Path

_LINK = re.compile(r"(\]\()(?![a-z]+:|#|/)([^)\s]+)\)")
"""](place): what is neither an address nor a heading of the page"""


def make_absolute(text: str, root: str) -> str:
    """Return the page with `root` before each link that is relative."""
    return _LINK.sub(rf"\g<1>{root.rstrip('/')}/\g<2>)", text)


def main(words: list[str]) -> int:
    """Print the page that the first word names."""
    if len(words) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    print(make_absolute(Path(words[0]).read_text(encoding="utf-8"), words[1]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
