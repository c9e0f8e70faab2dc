"""One pair of the zoo for `reprod-align pair examples/zoo/pair_zoo.py`; ZOO names it.

ZOO="paddlenlp: bert Model" chooses the pair. The packages are imported by their own side alone.
"""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from examples.zoo.mending import load_faults, mend  # noqa: E402
from examples.zoo.tables import find_pair  # noqa: E402

TABLE, PAIR = find_pair(os.environ["ZOO"])


def torch_model():
    """Return the PyTorch model, its weights moved."""
    return PAIR.make_torch(TABLE.load_torch())


def paddle_model():
    """Return its port; with ZOO_MENDED=1 without its known faults."""
    package = TABLE.load_paddle()
    if os.environ.get("ZOO_MENDED"):
        package = mend(
            package, [one for one in load_faults()[TABLE.faults_key] if one.shows_in(PAIR.name)]
        )
    return PAIR.make_paddle(package)


def inputs():
    """Return the batch."""
    return PAIR.batch()
