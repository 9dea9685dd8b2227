"""Gleaner: the memory that workstations own and do not use.

Open a dataset and read its tables as Arrow, pandas or Polars; analyse it, whole or in parts on many machines; write
reports; generate synthetic datasets; simulate lending. Names of options are those of the command ``gleaner``::

    import gleaner

    dataset = gleaner.open("out/demo/dataset")
    dataset.table("samples", hosts=["otter"], columns=["time", "mem_available_bytes"]).pandas()
    dataset.analyze(region=["64MiB", "1GiB"], time_zone="Europe/Berlin")["availability_periods"]

Values of options, everywhere in this package:

- sizes: bytes (int) or the command's texts, such as ``"64MiB"``;
- lengths of time: seconds (int or float), ``datetime.timedelta``, or texts such as ``"5m"`` and ``"1h30m"``;
- times: ``datetime.datetime`` (UTC if it has no time zone), ``datetime.date`` (its first moment in UTC), milliseconds
  since 1970-01-01 UTC (int), or texts as the command takes them;
- options that the command takes several times: one value, or a list.

A failure raises :class:`gleaner.Error` with the text that the command prints. :mod:`gleaner.parts` analyses ranges of
hosts, and simulates runs, in several processes, :mod:`gleaner.spark` on a Spark cluster; :mod:`gleaner.regions` keeps
parts of files in other hosts' memory.
"""

from ._gleaner import VERSION as __version__
from ._gleaner import Error
from ._options import AnalyzeOptions, Length, Size, Thresholds, Time
from .commands import analyze, explain, open, report, run, simulate, synth
from .dataset import Dataset, Table
from .findings import Document, Findings
from .parts import analyze_in_parts

__all__ = [
    "AnalyzeOptions",
    "Dataset",
    "Document",
    "Error",
    "Findings",
    "Length",
    "Size",
    "Table",
    "Thresholds",
    "Time",
    "__version__",
    "analyze",
    "analyze_in_parts",
    "explain",
    "open",
    "report",
    "run",
    "simulate",
    "synth",
]
