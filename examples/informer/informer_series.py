"""The series: ETTh1 or a generated one, its time features, its split by months, and its windows.

Both sides are given these arrays; what each makes of them is compared by check_data.py.
"""

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reprod_align.errors import MissingInputError, ReprodError

import numpy as np
from numpy.typing import NDArray

_DATE = re.compile(r"[12]\d{3}-\d\d-\d\d \d\d:\d\d(:\d\d)?", re.ASCII)
COLUMNS = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
MONTH = 30 * 24  # the paper's month, in hours
MONTHS = {"train": (0, 12), "val": (12, 16), "test": (16, 20)}  # from, up to
FEATURES = {  # the time features of each frequency, in the original's order
    "m": ("month",),
    "w": ("day", "week"),
    "d": ("weekday", "day", "yearday"),
    "b": ("weekday", "day", "yearday"),
    "h": ("hour", "weekday", "day", "yearday"),
    "t": ("minute", "hour", "weekday", "day", "yearday"),
    "s": ("second", "minute", "hour", "weekday", "day", "yearday"),
}
SPANS = {  # first value, and how far the last one is from it: a feature runs from -0.5 to 0.5
    "second": (0, 59),
    "minute": (0, 59),
    "hour": (0, 23),
    "weekday": (0, 6),
    "day": (1, 30),
    "yearday": (1, 365),
    "month": (1, 11),
    "week": (1, 52),
}
MARKS = {  # for the embeddings that are tables; of the minute, the quarter of the hour
    "m": ("month",),
    "w": ("month",),
    "d": ("month", "day", "weekday"),
    "b": ("month", "day", "weekday"),
    "h": ("month", "day", "weekday", "hour"),
    "t": ("month", "day", "weekday", "hour", "quarter"),
}

Array = NDArray[np.float64]
Dates = NDArray[np.datetime64]


@dataclass(frozen=True)
class Series:
    """Measurements: when, and what."""

    dates: Dates
    """(N,), by the second"""
    values: Array
    """(N, 7)"""


def read_series(path: Path) -> Series:
    """Read a file like ETTh1.csv.

    Raises MissingInputError without a file, ReprodError with the number of a wrong line.
    """
    if not path.is_file():
        raise MissingInputError(f"{path} is missing: --data-dir must hold ETTh1.csv")
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            series = _parse_rows(csv.reader(lines), path)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ReprodError(f"{path}: expected CSV text in UTF-8: {error}") from error
    return _require_length(series, str(path))


def _parse_rows(rows: Iterator[list[str]], path: Path) -> Series:
    """Return the rows below the header; ReprodError with the number of a wrong line."""
    if next(rows, None) != ["date", *COLUMNS]:
        raise ReprodError(f"{path}, line 1: the columns must be date,{','.join(COLUMNS)}")
    dates, values = [], []
    for number, row in enumerate(rows, start=2):
        try:
            dates.append(_parse_date(row[0]))
            values.append([float(word) for word in row[1:]])
        except (ValueError, IndexError):
            values.append([])
        if len(values[-1]) != len(COLUMNS) or not np.isfinite(values[-1]).all():
            raise ReprodError(f"{path}, line {number}: not a date and {len(COLUMNS)} numbers")
    return Series(np.array(dates, dtype="datetime64[s]"), np.array(values))


def _parse_date(word: str) -> np.datetime64:
    """Return a date and time, to the second; ValueError for another text."""
    if not _DATE.fullmatch(word):
        raise ValueError(word)
    return np.datetime64(word.replace(" ", "T"), "s")


def generate_series() -> Series:
    """Return 20 months of seven columns with a daily and a weekly rhythm, and noise that lingers."""
    length = MONTHS["test"][1] * MONTH
    hours, random = np.arange(length), np.random.default_rng(0)
    day, week = (np.sin(2 * np.pi * hours / period)[:, None] for period in (24, 168))
    noise = np.zeros((length, len(COLUMNS)))
    for hour in range(1, length):
        noise[hour] = 0.9 * noise[hour - 1] + random.normal(size=len(COLUMNS))
    strength = random.uniform(1, 4, (2, len(COLUMNS)))
    values = 10 + day * strength[0] + week * strength[1] + 0.5 * noise
    return Series(np.datetime64("2016-07-01T00:00:00") + hours * np.timedelta64(3600, "s"), values)


def calendar(dates: Dates) -> dict[str, NDArray[np.int64]]:
    """Return second, minute, quarter, hour, weekday, day, yearday, month and week of dates (N,)."""
    days, months = dates.astype("datetime64[D]"), dates.astype("datetime64[M]")
    seconds = (dates - days).astype("timedelta64[s]").astype(np.int64)
    minute, second = np.divmod(seconds, 60)
    hour, minute = np.divmod(minute, 60)
    return {
        "second": second,
        "minute": minute,
        "quarter": minute // 15,
        "hour": hour,
        "weekday": (days.astype(np.int64) + 3) % 7,  # 1970-01-01 was a Thursday; Monday is 0
        "day": (days - months).astype(np.int64) + 1,
        "yearday": (days - dates.astype("datetime64[Y]")).astype(np.int64) + 1,
        "month": months.astype(np.int64) % 12 + 1,
        "week": np.array([day.isocalendar().week for day in days.tolist()], dtype=np.int64),
    }


def time_features(dates: Dates, freq: str = "h") -> Array:
    """Return what embed="timeF" takes: numbers from -0.5 to 0.5, float64 (N, features).

    Raises ReprodError for a frequency without time features.
    """
    parts, names = calendar(dates), _choose(FEATURES, freq, "time features")
    columns = [(parts[name] - SPANS[name][0]) / SPANS[name][1] - 0.5 for name in names]
    return np.stack(columns, axis=1)


def calendar_marks(dates: Dates, freq: str = "h") -> Array:
    """Return what the other embeddings take: whole numbers as float64 (N, columns)."""
    parts, names = calendar(dates), _choose(MARKS, freq, "marks")
    return np.stack([parts[name] for name in names], axis=1).astype(np.float64)


class Split:
    """A part of the series, scaled by the mean and deviation of the train part, as windows.

    As in the original, the windows of val and test look back into the part before.
    """

    def __init__(self, series: Series, name: str, lengths: tuple[int, int, int], marks: Array):
        """Take "train", "val" or "test"; lengths are seq_len, label_len and out_len."""
        start, end = (month * MONTH for month in MONTHS[name])
        train = series.values[slice(*(month * MONTH for month in MONTHS["train"]))]
        rows = slice(start - (lengths[0] if start else 0), end)
        self.values = ((series.values - train.mean(0)) / train.std(0))[rows]  # (R, 7)
        self.marks = marks[rows]  # (R, columns)
        self.seq_len, self.label_len, self.out_len = lengths

    def __len__(self) -> int:
        """Return how many windows there are."""
        return len(self.values) - self.seq_len - self.out_len + 1

    def __getitem__(self, index: int) -> tuple[Array, Array, Array, Array]:
        """Return the known values (seq_len, 7), those to forecast with label_len before, and both's marks."""
        if not 0 <= index < len(self):
            raise IndexError(f"window {index} of {len(self)}")
        known = slice(index, index + self.seq_len)
        sought = slice(known.stop - self.label_len, known.stop + self.out_len)
        return self.values[known], self.values[sought], self.marks[known], self.marks[sought]


def _choose(table: dict[str, tuple[str, ...]], freq: str, what: str) -> tuple[str, ...]:
    letter = freq.lstrip("0123456789").lower()  # "15t" is every 15 minutes
    if letter not in table:
        raise ReprodError(f"freq {freq!r} has no {what}: give one of {', '.join(table)}")
    return table[letter]


def _require_length(series: Series, where: str) -> Series:
    wanted = MONTHS["test"][1] * MONTH
    if len(series.dates) < wanted:
        raise ReprodError(f"{where} has {len(series.dates)} rows, 20 months are {wanted}")
    return series
