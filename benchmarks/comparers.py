"""What each comparer says of the same pairs of arrays: the table of docs/comparison.md.

    python -m benchmarks.comparers

Each comparer judges float32 with its default rule and tolerances; one that is not installed gets a "?".
PaDiff patches both frameworks when it is imported: take a copy of the environment, and there
pip install polygraphy==0.53.6 padiff==0.2.0 && pip install --no-deps mindstudio-probe==26.2.0
"""

import logging
import warnings
from collections.abc import Callable, Iterator

from reprod_align import compare_records

import numpy as np
import numpy.typing as npt
from tabulate import tabulate

Array = npt.NDArray[np.float32]


def replace(array: Array, value: float) -> Array:
    """Return a copy with one element replaced."""
    copy = array.copy()
    copy.flat[7] = value
    return copy


def make_pairs() -> Iterator[tuple[str, bool, Array, Array]]:
    """Yield a pair's name, whether its two arrays are the same up to rounding, and the arrays."""
    base = np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32)
    many, small = np.zeros(1_000_000, np.float32), base * np.float32(1e-4)
    yield "equal", True, base, base.copy()
    yield "each element one step of float32 off", True, base, np.nextafter(base, np.float32(9))
    yield "NaN on one side", False, base, replace(base, np.nan)
    yield "NaN at one place on both", False, replace(base, np.nan), replace(base, np.nan)
    yield "inf and -inf", False, replace(base, np.inf), replace(base, -np.inf)
    yield "a (64, 32) matrix, transposed", False, base, base.T.copy()
    yield "rows in another order", False, base, base[::-1].copy()
    yield "ones, (4, 2) and (2,)", False, np.ones((4, 2), np.float32), np.ones(2, np.float32)
    yield "a million zeros, one off by 0.9", False, many, replace(many, 0.9)
    yield "values near 1e-4, 0.5% off", False, small, small * np.float32(1.005)


def ask_reprod_log(expected: Array, actual: Array) -> bool:
    """Mean absolute difference up to 1e-6."""
    from reprod_log import ReprodDiffHelper
    from reprod_log.utils import check_print_diff

    helper = ReprodDiffHelper()
    helper.compare_info({"x": expected}, {"x": actual})
    return bool(check_print_diff(helper.diff_dict, print_func=lambda line: None))


def ask_padiff(expected: Array, actual: Array) -> bool:
    """The two means, to 1e-7 relative."""
    from padiff.utils import compare_tensor_ret_bool

    return bool(compare_tensor_ret_bool(expected, actual))


def ask_polygraphy(expected: Array, actual: Array) -> bool:
    """Each element to 1e-5, absolute or relative."""
    from polygraphy.comparator.compare import SimpleCompareFunc
    from polygraphy.comparator.struct import IterationResult
    from polygraphy.logger import G_LOGGER

    G_LOGGER.module_severity = G_LOGGER.CRITICAL
    sides = (IterationResult({"x": array}) for array in (expected, actual))
    return bool(SimpleCompareFunc()(*sides)["x"])


def ask_msprobe(expected: Array, actual: Array) -> bool:
    """Cosine and largest difference; its column "Accuracy Reached or Not"."""
    from msprobe.core.compare.multiprocessing_compute import check_accuracy
    from msprobe.core.compare.npy_compare import (
        CompareResult,
        ValidateTensor,
        compare_ops_apply,
    )

    columns = ["Cosine", "MaxAbsErr"]
    pair = ValidateTensor().check_tensor(CompareResult(actual.copy(), expected.copy()))
    found, _ = compare_ops_apply(
        pair.n_value, pair.b_value, pair.error_flag, pair.err_msg, column_names=columns
    )
    return bool(check_accuracy(*found) == "Yes")


def ask_ours(expected: Array, actual: Array) -> bool:
    """The official rule: the mean up to 1e-6, and the checks of names, kinds, shapes, NaN and outliers."""
    return bool(compare_records({"x": expected}, {"x": actual}).passed)


COMPARERS: dict[str, Callable[[Array, Array], bool]] = {
    "reprod_log 1.0.1": ask_reprod_log,
    "PaDiff 0.2.0": ask_padiff,
    "Polygraphy 0.53.6": ask_polygraphy,
    "msprobe 26.2.0": ask_msprobe,
    "reprod_align": ask_ours,
}


def ask(comparer: Callable[[Array, Array], bool], pair: tuple[Array, Array], same: bool) -> str:
    """Return what a comparer says, bold where it is wrong."""
    try:
        passed = comparer(*pair)
    except ImportError:
        return "?"
    except Exception as error:  # a comparer that raises says so
        return f"raises {type(error).__name__}"
    said = "agree" if passed else "differ"
    return said if passed == same else f"**{said}**"


def main() -> None:
    """Print the table; the comparers' own messages are left out."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    rows = [
        [name, *(ask(comparer, pair, same) for comparer in COMPARERS.values())]
        for name, same, *pair in make_pairs()
    ]
    print(tabulate(rows, headers=["pair", *COMPARERS], tablefmt="github"))


if __name__ == "__main__":
    main()
