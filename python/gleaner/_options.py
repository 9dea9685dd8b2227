"""Options of the command ``gleaner``, made from Python's values."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypeAlias, TypedDict, Union

from . import _gleaner

AnyPath: TypeAlias = Union[str, "os.PathLike[str]"]
"""Path of a file or folder; for a dataset also a URL, such as ``s3://bucket/prefix``."""
Size: TypeAlias = Union[int, str]
"""Size in bytes, or a text such as ``"64MiB"``."""
Length: TypeAlias = Union[int, float, timedelta, str]
"""Length of time in seconds, as ``timedelta``, or as a text such as ``"1h30m"``."""
Time: TypeAlias = Union[int, date, datetime, str]
"""Point in time: ``datetime``, ``date``, ms since 1970-01-01 UTC, or a text."""


class Thresholds(TypedDict, total=False):
    """Thresholds of the measures, for :func:`gleaner.analyze` and :func:`gleaner.report`.

    ``minimum_period``: drop availability periods shorter than this length (default: 5 minutes).
    ``idle_after``: time without activity and with low load after which a host counts as idle (5 minutes).
    ``load_limit``: 5-minute load average from which a host counts as busy (0.3).
    ``headroom``: percentage of physical memory that is never lent (15).
    ``class_``: upper bounds of the classes of hosts by memory size (powers of two).
    ``time_zone``: time zone of the fleet, an IANA name, for hours and weekdays (UTC).
    ``bootstrap``: number of bootstrap resamples of the hosts, for confidence intervals; 0: no intervals (1000).
    ``region``: sizes of the regions whose availability is measured (chosen from the hosts' memory).
    ``dip``: available memory below which a sample counts as a dip (chosen from the hosts' memory).
    ``dip_percent``: thresholds of dips as percentages of each host's memory (5, 10 and 25).
    ``curve_points``: maximum number of points per survival curve; 0: all points (60).
    """

    minimum_period: Length
    idle_after: Length
    load_limit: float
    headroom: float
    class_: Size | Sequence[Size]
    time_zone: str
    bootstrap: int
    region: Size | Sequence[Size]
    dip: Size | Sequence[Size]
    dip_percent: float | Sequence[float]
    curve_points: int


class AnalyzeOptions(Thresholds, total=False):
    """Options of :func:`gleaner.analyze`: the thresholds (:class:`Thresholds`), the measures and the time.

    ``measure``: keys of the findings to compute (all).
    ``from_``: use only records from this time on; periods that cross it are cut.
    ``until``: use only records before this time; periods that cross it are cut.
    """

    measure: str | Sequence[str]
    from_: Time
    until: Time


_SIZES = {"class_", "region", "dip"}
_LENGTHS = {"minimum_period", "idle_after", "interval"}
_TIMES = {"from_", "until"}


def arguments(options: Mapping[str, Any], known: Iterable[str] | None = None) -> list[str]:
    """Options as arguments of the command; ``None`` and ``False`` are left out.

    Raises TypeError if an option is not in ``known``.
    """
    if known is not None and (unknown := [name for name in options if name not in set(known)]):
        raise TypeError(f"there is no option {unknown[0]!r}: there are {', '.join(sorted(known))}")
    made = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            made.append(option)
            continue
        made += [f"{option}={_text(name, one)}" for one in several(value)]
    return made


def several(value: Any) -> list[Any]:
    """The values of a list, or one value as a list."""
    is_many = isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping, os.PathLike))
    return list(value) if is_many else [value]


def time(value: Time) -> str:
    """A point in time as the command takes it."""
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    return str(value)


def length(value: Length) -> str:
    """A length of time as the command takes it."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    return value if isinstance(value, str) else f"{round(value * 1000)}ms"


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or (name in _SIZES and isinstance(value, float)):
        raise TypeError(f"{name} cannot be {value!r}")
    if name in _LENGTHS:
        return length(value)
    if name in _TIMES:
        return time(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def path_of(dataset: AnyPath) -> str:
    """Folder or URL of a dataset, which is a :class:`gleaner.Dataset`, a path or a URL."""
    return os.fspath(dataset)


def is_url(path: str) -> bool:
    """True for the URL of a dataset, such as ``s3://bucket/prefix``; false for the path of a folder."""
    return "://" in path


def place_of(dataset: AnyPath) -> str:
    """Absolute path or URL of a dataset, which names the same dataset in every process."""
    path = path_of(dataset)
    return path if is_url(path) else os.path.abspath(path)


def parameters(options: Mapping[str, Any]) -> str:
    """Parameters of an analysis as JSON, parsed and checked as the command does."""
    made = arguments(options, AnalyzeOptions.__annotations__)
    return _gleaner.parameters(["analyze", "--json", *made, "--", "."])
