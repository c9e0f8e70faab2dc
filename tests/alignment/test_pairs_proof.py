"""Each case of the suite is what it says: a correct pair agrees in float64, a planted bug shows."""

from tests.pairs import cnn, conv1d, embedding, mlp, norms, training
from tests.pairs.case import Case
from tests.pairs.proof import difference

import pytest

FAMILIES = [cnn, conv1d, embedding, mlp, norms, training]
CASES = [one for family in FAMILIES for one in family.CASES]
NAMES = {name: names for family in FAMILIES for name, names in getattr(family, "NAMES", {}).items()}

AGREES = 1e-9
SHOWS = 1e-7
FLOAT32_INSIDE = {  # Paddle's kernel keeps a constant of these as float32
    "cnn ok: averages over nine": 1e-7,
    "loss ok: label smoothing": 1e-7,
}


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
@pytest.mark.parametrize("one", CASES, ids=lambda one: one.name)
def test_a_case_is_what_it_says(one: Case):
    found = difference(one, NAMES.get(one.name))
    if one.culprits:
        assert found > SHOWS
    else:
        assert found < FLOAT32_INSIDE.get(one.name, AGREES)


def test_names_of_cases_are_unique():
    assert len({one.name for one in CASES}) == len(CASES)


def test_maps_belong_to_a_case():
    assert set(NAMES) <= {one.name for one in CASES}
