"""Regions of memory that other hosts lend, each backed by a part of an open file: libgleaner_regions by ctypes (docs/regions.md).

The file always has everything: what servers do can cost time, and never a byte.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from types import TracebackType
from typing import BinaryIO

__all__ = ["Region", "configure", "end"]


def _load() -> ctypes.CDLL:
    """The library that GLEANER_REGIONS_LIBRARY names, or else the system's."""
    name = os.environ.get("GLEANER_REGIONS_LIBRARY") or ctypes.util.find_library("gleaner_regions") or "libgleaner_regions.so.0"
    library = ctypes.CDLL(name, use_errno=True)
    place, number = ctypes.c_uint64, ctypes.c_int
    library.gleaner_mset.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    library.gleaner_mopen.argtypes = [place, number, place]
    library.gleaner_mread.argtypes = [number, place, ctypes.c_void_p, ctypes.c_size_t]
    library.gleaner_mread.restype = ctypes.c_ssize_t
    library.gleaner_mwrite.argtypes = [number, place, ctypes.c_void_p, ctypes.c_size_t]
    library.gleaner_mwrite.restype = ctypes.c_ssize_t
    library.gleaner_mremote.argtypes = [number]
    library.gleaner_mclose.argtypes = [number]
    library.gleaner_mend.argtypes = []
    library.gleaner_merror.argtypes = []
    library.gleaner_merror.restype = ctypes.c_char_p
    return library


_library = _load()


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), _library.gleaner_merror().decode(errors="replace"))
    return result


def configure(**settings: str | int) -> None:
    """Sets what gleaner_regions.h lists, such as ``recruiters`` or ``patience_ms``, before the first region is opened."""
    for name, value in settings.items():
        _checked(_library.gleaner_mset(name.encode(), str(value).encode()))


def end() -> None:
    """Closes all regions, and gives all leases back."""
    _checked(_library.gleaner_mend())


class Region:
    """Remote memory for ``size`` bytes of ``file`` from ``offset`` on; closed at the end of a ``with`` block.

    Raises MemoryError where nobody lends as much now: the caller still has its file.
    """

    def __init__(self, file: BinaryIO | int, size: int, offset: int = 0) -> None:
        self._md = -1
        fd = file if isinstance(file, int) else file.fileno()
        if size < 0 or offset < 0:
            raise ValueError("neither size nor offset is negative")
        md = _library.gleaner_mopen(size, fd, offset)
        if md < 0 and ctypes.get_errno() == 12:  # ENOMEM
            raise MemoryError(_library.gleaner_merror().decode(errors="replace"))
        self._md = _checked(md)
        self.size = size

    def read(self, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes from there; fewer at the region's end alone."""
        buffer = bytearray(size)
        count = self.readinto(offset, buffer)
        return bytes(memoryview(buffer)[:count])

    def readinto(self, offset: int, buffer: bytearray | memoryview) -> int:
        """Fills a writable buffer, and says how much of it."""
        view = memoryview(buffer).cast("B")
        if offset < 0:
            raise ValueError("no offset is negative")
        if not view.nbytes:
            return 0
        return _checked(_library.gleaner_mread(self._md, offset, (ctypes.c_char * view.nbytes).from_buffer(view), view.nbytes))

    def write(self, offset: int, data: bytes | bytearray | memoryview) -> int:
        """Writes all of it, to the file first."""
        data = bytes(data)
        if offset < 0:
            raise ValueError("no offset is negative")
        return _checked(_library.gleaner_mwrite(self._md, offset, data, len(data)))

    @property
    def is_remote(self) -> bool:
        """Whether it still has remote memory."""
        return _checked(_library.gleaner_mremote(self._md)) == 1

    def close(self) -> None:
        """Gives the memory back; a second time is none."""
        md, self._md = self._md, -1
        if md >= 0:
            _checked(_library.gleaner_mclose(md))

    def __enter__(self) -> Region:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
