"""Libraries of frames, which the package uses if they are installed."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _gleaner

if TYPE_CHECKING:
    import pyarrow


def needed(module: str, extra: str) -> Any:
    """Imports a module. Raises ImportError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise ImportError(f"{module} is not installed: pip install 'gleaner[{extra}]'", name=module) from error


def batches(rows: Any) -> Iterator[pyarrow.RecordBatch]:
    """Reads rows batch by batch. Raises :class:`gleaner.Error` for a file that is damaged or unreadable."""
    pa = needed("pyarrow", "arrow")
    try:
        yield from pa.RecordBatchReader.from_stream(rows)
    except pa.ArrowException as error:
        # Arrow's stream carries the text of the error, with the kind of error in front of it.
        raise _gleaner.Error(str(error).removeprefix("External error: ")) from error
