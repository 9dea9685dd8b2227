"""The commands of ``gleaner`` as functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from . import _gleaner
from ._options import AnyPath, Length, Thresholds, Time, arguments, parameters, path_of, place_of, several, time
from .dataset import Dataset
from .findings import Document, Findings
from .parts import Map, simulated

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import AnalyzeOptions


def open(path: AnyPath) -> Dataset:
    """Opens a dataset in a folder, or at the URL of an object store (``s3://bucket/prefix``).

    ``gleaner-agent export``, a collector, an import or :func:`synth` wrote the folder; a collector publishes to the URL.
    Credentials and options of an object store come from the environment: ``AWS_ACCESS_KEY_ID``,
    ``AWS_SECRET_ACCESS_KEY``, ``AWS_REGION``, ``AWS_ENDPOINT_URL`` and so on (docs/scale.md).

    Raises :class:`gleaner.Error` if there is no dataset, or one that a newer Gleaner wrote.
    """
    return Dataset(path)


def analyze(dataset: Dataset | AnyPath, *, records: AnyPath | None = None, **options: Unpack[AnalyzeOptions]) -> Findings:
    """Analyses a dataset: how much memory is available, when, for how long, and how much could be lent.

    ``dataset`` is a :class:`Dataset`, its folder or its URL. Options (:class:`gleaner.AnalyzeOptions`) have the command's
    names and defaults:

    - ``measure``: keys of the findings to compute (default: all);
    - ``from_``, ``until``: use only records of this time; the end is excluded;
    - ``region``: sizes of the regions whose availability is measured;
    - ``dip``, ``dip_percent``: thresholds of dips, in bytes and as percentages of each host's memory;
    - ``class_``: upper bounds of the classes of hosts by memory size;
    - ``time_zone``: time zone of hours and weekdays, an IANA name (UTC);
    - ``minimum_period``, ``idle_after``, ``load_limit``, ``headroom``, ``bootstrap``, ``curve_points``: see
      :class:`gleaner.Thresholds`.

    With ``records``, the records of single hosts are written into Parquet files in this new folder, and the findings
    read them from there (:meth:`Findings.file`). All measures of more than 10,000 hosts need it.

    The analysis uses all CPUs and reads one host per CPU at a time. The text of the result
    (:attr:`Document.json`) is, byte for byte, the output of ``gleaner analyze --json``. docs/analysis.md defines every
    measure. Raises :class:`gleaner.Error`; TypeError for an option that does not exist.
    """
    folder = None if records is None else os.fspath(records)
    return Findings(_gleaner.analyze(path_of(dataset), parameters(options), folder))


def explain(dataset: Dataset | AnyPath, host: str, at: Time | None = None, *, headroom: float | None = None) -> Document:
    """Explains how a host's memory categories, idle state and quota were computed.

    ``host`` is an id or a name; ``at`` a time, whose last sample before it is explained (default: the host's last
    sample); ``headroom`` the percentage of physical memory that is never lent (15). The text of the result is the
    output of ``gleaner explain --json``.
    """
    options = arguments({"host": host, "at": None if at is None else time(at), "headroom": headroom})
    return Document(_gleaner.run(["explain", "--json", *options, "--", path_of(dataset)]))


def report(
    dataset: Dataset | AnyPath,
    output: AnyPath | None = None,
    *,
    title: str | None = None,
    anonymous: bool = False,
    week: str | None = None,
    from_: Time | None = None,
    until: Time | None = None,
    no_comparison: bool = False,
    also: str | Sequence[str] = (),
    pdf: bool = False,
    chromium: AnyPath | None = None,
    folder: AnyPath | None = None,
    keep: int | None = None,
    sites: AnyPath | None = None,
    site: str | Sequence[str] = (),
    fleet: bool = False,
    **thresholds: Unpack[Thresholds],
) -> Path:
    """Writes a report as one HTML page, and returns the page's path.

    Exactly one of ``output``, the page's file, and ``folder`` is needed. With ``folder``, the page of the ``week``
    (like ``"2026-W47"``, or ``"last"``) and an index of weeks are written there, ``keep`` newest weeks are kept, and
    the folder's path is returned. ``also`` names companion files (``md``, ``csv``, ``json``); ``pdf`` writes a PDF and
    pictures with the program ``chromium``. ``anonymous`` replaces hosts' names by numbers; ``no_comparison`` leaves
    out the preceding period. ``from_`` and ``until`` select another time than a week. ``sites`` is a TOML file that divides
    the hosts into sites: each site gets a page in a folder beside the page, which then has all hosts together. ``site``
    makes only the pages of these sites, ``fleet`` only the page of all hosts, from what ``site`` kept. ``thresholds`` are those of
    :func:`analyze` (:class:`gleaner.Thresholds`). Mail is sent by the command only.

    Raises :class:`gleaner.Error`, also if nothing was recorded in that time.
    """
    written = output if folder is None else folder
    if written is None or (output is not None and folder is not None):
        raise ValueError("give either output or folder")
    options = {
        "output": output,
        "title": title,
        "anonymous": anonymous,
        "week": week,
        "from_": from_,
        "until": until,
        "no_comparison": no_comparison,
        "also": also,
        "pdf": pdf,
        "chromium": chromium,
        "folder": folder,
        "keep": keep,
        "sites": sites,
        "site": site,
        "fleet": fleet,
    }
    made = [*arguments(options), *arguments(thresholds, Thresholds.__annotations__)]
    _gleaner.run(["report", *made, "--", path_of(dataset)])
    return Path(written)


def synth(
    output: AnyPath,
    *,
    preset: str | None = None,
    fleet: AnyPath | None = None,
    cluster: str | None = None,
    hosts: int | None = None,
    days: int | None = None,
    always_on: bool = False,
    seed: int | None = None,
    start: date | str | None = None,
    interval: Length | None = None,
) -> Dataset:
    """Generates a synthetic dataset in the new or empty folder ``output``, and opens it.

    ``preset`` is a shipped fleet (``modern``, ``acharya-setia-a``, ``acharya-setia-b``, ``acharya-setia``), ``fleet`` a
    TOML file of your own and ``cluster`` one of its clusters. ``hosts`` and ``days`` are the dataset's size, ``seed``
    (1) the start of all random numbers, ``start`` the first day (UTC), ``interval`` the time between samples (90 s);
    with ``always_on`` no host sleeps or is turned off. Equal arguments give equal bytes. See docs/synth.md.
    """
    options = {
        "output": output,
        "preset": preset,
        "fleet": fleet,
        "cluster": cluster,
        "hosts": hosts,
        "days": days,
        "always_on": always_on,
        "seed": seed,
        "start": start,
        "interval": interval,
    }
    _gleaner.run(["synth", *arguments(options)])
    return Dataset(output)


def simulate(
    scenario: AnyPath,
    *,
    dataset: Dataset | AnyPath | Mapping[str, Dataset | AnyPath] | None = None,
    sweep: Mapping[str, Any] | None = None,
    program: str | Sequence[str] = (),
    seed: int | Sequence[int] = (),
    from_: Time | None = None,
    days: float | None = None,
    jobs: int | None = None,
    page: AnyPath | None = None,
    parts: int | None = None,
    executor: Union[Executor, Map, None] = None,
) -> Document:
    """Simulates lending on a dataset's hosts, and returns benefit and cost.

    ``scenario`` is a TOML file or the name of a shipped scenario (``gleaner simulate --list``). The other arguments
    replace its settings: ``dataset`` one dataset, or several by their names; ``sweep`` values to try, such as
    ``{"placement": ["random", "spread"]}``; ``program`` and ``seed`` one or several; ``from_`` and ``days`` the simulated
    time. ``page`` is an HTML file to write as well, ``jobs`` the number of concurrent simulations (one per CPU).

    With ``parts`` or ``executor``, the runs are divided into ``parts`` tasks of about the same cost (default: the number
    of CPUs). ``executor`` runs the tasks as for :func:`gleaner.analyze_in_parts`, by default in new processes. The result
    is the same, byte for byte.

    The text of the result is the output of ``gleaner simulate --json -``; ``["rows"]`` has a record per program,
    dataset and combination of settings. See docs/simulator.md.
    """
    swept = [f"{key}={','.join(map(str, several(values)))}" for key, values in (sweep or {}).items()]
    options = {
        "sweep": swept,
        "dataset": _datasets(dataset),
        "program": program,
        "seed": seed,
        "from_": from_,
        "days": days,
        "jobs": jobs,
    }
    if parts is not None or executor is not None:
        return Document(simulated([*arguments(options), "--", _everywhere(scenario)], page, parts, executor))
    outputs = arguments({"json": "-", "page": page})
    return Document(_gleaner.run(["simulate", *arguments(options), *outputs, "--", os.fspath(scenario)]))


def _datasets(dataset: Dataset | AnyPath | Mapping[str, Dataset | AnyPath] | None) -> list[str]:
    """Datasets of a simulation as the command takes them, with paths that every process has."""
    if dataset is None:
        return []
    named = dataset if isinstance(dataset, Mapping) else {os.path.basename(place_of(dataset).rstrip("/")): dataset}
    return [f"{name}={place_of(one)}" for name, one in named.items()]


def _everywhere(scenario: AnyPath) -> str:
    """A scenario for processes with other current folders: its file's absolute path, or its name."""
    text = os.fspath(scenario)
    # A shipped scenario's name has neither a folder nor an ending.
    is_file = os.path.dirname(text) or os.path.splitext(text)[1]
    return os.path.abspath(text) if is_file else text


def run(*command: AnyPath) -> str:
    """Runs any command of ``gleaner``, and returns the text that it would print.

    For example ``run("export", "DATASET", "--to", "parquet", "-o", "out/parquet")``. Commands for terminals and daemons
    (``demo``, ``collect``, ``top``, ``owner``, ``pki``, ``doctor``, ``completions``) print to the process's standard
    output instead. Raises :class:`gleaner.Error` with the text that the command prints when it fails.
    """
    return _gleaner.run([os.fspath(argument) for argument in command])
