"""Regions: parts of files that are also stored in other hosts' memory (docs/regions.md).

The module is the library ``gleaner_regions``, which is not part of the wheel: ``regions/install PREFIX`` in Gleaner's
repository builds and installs it, for C and Python. Then either ``PREFIX/lib/gleaner/python`` is in ``PYTHONPATH``, or the
import below fails with a text that says so::

    from gleaner import regions

    regions.configure(servers="nbd://127.0.0.1:10809")
    with open("matrix", "r+b") as file, regions.Region(file, 64 << 20) as region:
        row = region.read(4096, 512)
    regions.end()
"""

try:
    from gleaner_regions import Region, configure, end
except (ImportError, OSError) as error:
    raise ImportError(
        f"gleaner.regions needs the library gleaner_regions ({error}): install it by `regions/install PREFIX` from Gleaner's "
        "repository, and add PREFIX/lib/gleaner/python to PYTHONPATH; GLEANER_REGIONS_LIBRARY may name libgleaner_regions.so"
    ) from error

__all__ = ["Region", "configure", "end"]
