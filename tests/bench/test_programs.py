"""bench/programs.py without root: the preset --hour keeps the ratios of the sizes, and a job that did not end gives a lower bound."""

import sys
from argparse import Namespace
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH)]

import programs  # noqa: E402
from programs import FULL, HOUR, HOUR_OPTIONS  # noqa: E402


def test_the_hour_divides_programs_and_local_memory_by_the_same_numbers():
    for sizes in (FULL, HOUR):
        single, concurrent = sizes.local_mib("single"), sizes.local_mib("concurrent")
        # The published sizes are 3.4, 5, 1 and 1.5 GB, and 18 processes of 100 MB.
        needs = [max(sizes.spheres_by_mib), sizes.sort_mib, sizes.calls_mib[1], sizes.vectors_mib[1]]
        assert [need / single for need in needs] == pytest.approx([13.6, 20, 4, 6], rel=0.01)
        assert max(sizes.at_once) * sizes.each_mib / concurrent == pytest.approx(7, rel=0.01)


def test_the_hour_has_six_programs_and_its_jobs_on_the_disk_end_within_it(tmp_path):
    args = Namespace(hour=True, quick=False, at_once=4, **HOUR_OPTIONS)
    jobs = programs.jobs_of(args, tmp_path)
    assert [job.name for job in jobs if job.set == "single"] == ["POV-Ray, 109 MiB", "std::sort, 160 MiB", "ns-2, 32 MiB", "nearest neighbours, 48 MiB"]
    assert [job.processes for job in jobs if job.set == "concurrent" and job.name == "POV-Ray, 25 MiB"] == [1, 12, 18]
    # A process alone fits into the group's memory.
    swapping = [job for job in jobs if job.set == "single" or job.processes > 1]
    assert len(swapping) * args.most_s <= 48 * 60


def test_a_job_that_took_too_long_on_the_disk_gives_a_lower_bound():
    row = {"set": "single", "program": "ns-2", "processes": 1}
    rows = [row | {"way": "borrowed", "outcome": "done", "seconds": 20.0}, row | {"way": "disk", "outcome": "took too long", "seconds": 360}]
    assert programs.table(rows, ["borrowed", "disk"]).splitlines()[-1].endswith("| 20.0 | took too long (360 s) | > 18.0 |")
    rows[1] |= {"outcome": "ended itself"}
    assert programs.table(rows, ["borrowed", "disk"]).splitlines()[-1].endswith("| ended itself (360 s) |  |")
