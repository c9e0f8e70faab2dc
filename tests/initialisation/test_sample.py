"""What is kept of a parameter over the seeds, and its way through a file."""

from pathlib import Path

from reprod_align.errors import RecordError, ReprodError
from reprod_align.initialisation.sample import Collector, as_record, count_fans, from_record
from reprod_align.records import load_record, save_record
from tests.initialisation.draws import constant, normal, orthogonal, sampled, table

import numpy as np
import pytest


def test_fixed_elements_are_no_part_of_the_random_ones() -> None:
    """A bias whose second quarter is one (an LSTM's forget gate), the rest normal."""

    def bias(draw: np.random.Generator) -> np.ndarray:
        values = draw.normal(0.0, 0.02, 400)
        values[100:200] = 1.0
        return values

    sample = sampled(1, bias=bias)["bias"]
    assert (sample.fixed_at == np.arange(100, 200)).all() and (sample.fixed == 1).all()
    assert sample.moments.count == sample.values.size == 8 * 300
    assert sample.moments.mean == pytest.approx(sample.values.mean())
    assert sample.moments.std == pytest.approx(sample.values.std(ddof=1))
    shape = sample.values - sample.values.mean()
    kurtosis = (shape**4).mean() / (shape**2).mean() ** 2
    assert sample.moments.kurtosis == pytest.approx(kurtosis)


def test_records(tmp_path: Path) -> None:
    samples = sampled(1, words=table(0, 100, 8), dense=normal(0.02, 9, 9), bias=constant(0, 9))
    path = save_record(tmp_path / "init", as_record(samples))
    loaded = from_record(load_record(path))
    for name, sample in samples.items():
        for field, value in vars(sample).items():
            assert np.array_equal(value, getattr(loaded[name], field)), (name, field)
    with pytest.raises(RecordError, match="does not hold an initialisation"):
        from_record({"logits": np.zeros(3)})
    with pytest.raises(RecordError, match="empty"):
        from_record({})


def test_orthogonal_rows_are_noticed() -> None:
    found = sampled(1, turned=orthogonal(6, 6), drawn=normal(1.0, 6, 6))
    assert found["turned"].orthogonal and not found["drawn"].orthogonal


def test_a_copy_shares_its_digest() -> None:
    collected = Collector(range(3))
    for seed in range(3):
        array = np.random.default_rng(seed).normal(size=(4, 3))
        for name, values in (("a", array), ("b", array), ("c", array + 1)):
            collected.add(name, values, values.shape)
    found = collected.samples()
    assert found["a"].digest == found["b"].digest != found["c"].digest


def test_a_parameter_that_one_seed_lacks() -> None:
    collected = Collector(range(3))
    for _ in range(2):
        collected.add("a", np.zeros(2), (2,))
    with pytest.raises(ReprodError, match="not every seed's model has a"):
        collected.samples()


def test_a_convolutions_fans() -> None:
    assert count_fans((40, 24, 3, 3)) == (24 * 9, 40 * 9) and count_fans((40,)) is None
