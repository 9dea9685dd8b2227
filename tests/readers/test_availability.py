"""The analysis' Tables 3 and 4 for machines of the Bitbrains archive, compared with pandas."""

import json
import math

import availability
import pandas as pd
import pytest

MIB = 1 << 20
REGIONS = [64 * MIB, 256 * MIB, 1024 * MIB, 2048 * MIB, 4096 * MIB]
DIPS = [128 * MIB, 512 * MIB, 1024 * MIB, 2048 * MIB]


@pytest.fixture(scope="module")
def bitbrains(gleaner, imported, tmp_path_factory) -> tuple[dict, pd.DataFrame]:
    """Findings of `gleaner analyze`, and the exported samples."""
    parquet = tmp_path_factory.mktemp("bitbrains") / "parquet"
    gleaner("export", imported, "--to", "parquet", "-o", parquet, "--table", "samples")
    regions = [arg for size in REGIONS for arg in ("--region", str(size))]
    thresholds = [arg for size in DIPS for arg in ("--dip", str(size))]
    found = json.loads(gleaner("analyze", imported, "--json", *regions, *thresholds))
    return found, availability.read(parquet)


def test_dips_equal_pandas(bitbrains):
    found, samples = bitbrains

    def order(dip: dict) -> tuple:
        return dip["host_id"], dip["threshold_share"] or 0, dip["threshold_bytes"]

    expected = sorted(availability.dips(samples, DIPS), key=order)
    dips = [{name: dip[name] for name in expected[0]} for dip in sorted(found["dips"], key=order)]
    assert dips == expected
    assert len(dips) == 7 * (len(DIPS) + len(availability.SHARES))
    assert any(0 < dip["intervals_count"] < dip["samples_count"] for dip in dips)


def test_availability_periods_equal_pandas(bitbrains):
    found, samples = bitbrains
    expected = {
        (record["size_class"], record["region_bytes"]): record
        for record in availability.availability_periods(samples, REGIONS)
    }
    records = found["availability_periods"]
    periods = [r for r in records if r["scope"] == "all" and r["notion"] == "available"]
    assert {(r["size_class"], r["region_bytes"]) for r in periods} == set(expected)
    for record in periods:
        other = expected[record["size_class"], record["region_bytes"]]
        assert record["periods_count"] == other["periods_count"], record
        assert record["censored_count"] == other["censored_count"], record
        for name in ("mean_s", "median_s"):
            if other[name] is None:
                assert record[name] is None, record
            else:
                assert math.isclose(record[name], other[name], rel_tol=1e-9), record
    assert sum(r["periods_count"] - r["censored_count"] for r in periods) > 50


def test_what_the_archive_lacks_is_not_measured(bitbrains):
    found, _ = bitbrains
    assert not [record for record in found["availability_periods"] if record["scope"] == "idle"]
    assert not found["idle_periods"] and not found["top_processes"] and not found["top_files"]
    for host in found["hosts"]:
        assert host["idle_share"] is None, host


def test_periods_worked_by_hand():
    minutes = [0, 5, 10, 15, 20, 25, 60, 65, 70]
    available = [5, 5, 1, 5, 5, 1, 5, 1, 5]
    samples = pd.DataFrame(
        {
            "host_id": "a",
            "time_ms": [60_000 * minute for minute in minutes],
            "physical_bytes": 6,
            "available_bytes": available,
        }
    )
    found = availability.periods(availability.with_runs(samples), 5)
    # From the start, cut; a complete one; after the gap, cut; the last sample has no length.
    assert found["length_s"].tolist() == [600, 600, 300]
    assert found["is_cut"].tolist() == [True, False, True]
    assert availability.size_class(6) == "4-8 B"
    assert availability.size_class(1 << 30) == "512-1024 MiB"
    assert availability.size_class((1 << 30) + 1) == "1-2 GiB"
