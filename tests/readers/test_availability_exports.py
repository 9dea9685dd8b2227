"""`gleaner export --to availability` in other programs, compared with the findings of `gleaner analyze`."""

import json
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

GIB = 1 << 30
TIMES = ("begin", "end", "time")
FLAGS = ("is_start_known", "follows_gap", "is_idle", "is_in_idle_period")
CAUSES = ("owner", "load", "memory", "sleep_or_power", "network", "agent")


def with_pandas(path: Path) -> pd.DataFrame:
    match path.suffix:
        case ".parquet":
            return pd.read_parquet(path)
        case ".arrow":
            return pd.read_feather(path)
    rows = pd.read_csv(path, true_values=["true"], false_values=["false"])
    for name in rows.columns.intersection(TIMES):
        rows[name] = pd.to_datetime(rows[name], format="ISO8601", utc=True)
    return rows


def with_polars(path: Path) -> pd.DataFrame:
    read = {".parquet": pl.read_parquet, ".arrow": pl.read_ipc}.get(path.suffix)
    return (read(path) if read else pl.read_csv(path, try_parse_dates=True)).to_pandas()


def with_duckdb(path: Path) -> pd.DataFrame:
    if path.suffix == ".arrow":  # by pyarrow: DuckDB's own reader would need a download
        rows = pd.read_feather(path, dtype_backend="pyarrow")
        return duckdb.sql("SELECT * FROM rows").df()
    with duckdb.connect() as connection:
        connection.sql("SET TimeZone = 'UTC'")
        return connection.sql(f"SELECT * FROM '{path}'").df()


TOOLS = {"pandas": with_pandas, "polars": with_polars, "duckdb": with_duckdb}


def plain(rows: pd.DataFrame) -> pd.DataFrame:
    """The same values in the same types, whichever tool read them."""
    rows = rows.copy()
    for name in rows.columns:
        if name in TIMES:
            utc = pd.to_datetime(rows[name], utc=True)
            rows[name] = utc.astype("datetime64[ms, UTC]").astype("int64")
        elif name in FLAGS:
            rows[name] = rows[name].astype("boolean")
        elif name.endswith(("_bytes", "_ms")):
            rows[name] = rows[name].astype("Int64")
        else:
            rows[name] = rows[name].astype("string")
    return rows


@pytest.fixture(scope="module")
def fleet(gleaner, tmp_path_factory) -> Path:
    dataset = tmp_path_factory.mktemp("fleet") / "dataset"
    gleaner("synth", "-o", dataset, "--hosts", "4", "--days", "3", "--interval", "2m")
    return dataset


@pytest.fixture(params=["all", "idle"])
def scope(request) -> str:
    return request.param


def exported(gleaner, dataset: Path, folder: Path, *how: str) -> Path:
    gleaner("export", dataset, "--to", "availability", "-o", folder, *how)
    return folder


def analyzed(gleaner, dataset: Path, region: int) -> dict:
    return json.loads(gleaner("analyze", dataset, "--json", "--region", str(region)))


def of_all(found: dict, key: str, scope: str, notion: str = "available") -> dict:
    wanted = {"size_class": "all", "scope": scope, "notion": notion}
    (record,) = [r for r in found[key] if wanted.items() <= r.items()]
    return record


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("form", ["parquet", "csv", "arrow"])
def test_every_form_is_read_alike(gleaner, fleet, tmp_path, tool, form):
    how = ["--region", "12GiB", "--scope", "idle"]
    wanted = exported(gleaner, fleet, tmp_path / "parquet", *how)
    folder = exported(gleaner, fleet, tmp_path / "read", *how, "--as", form)
    for name in ("periods", "samples"):
        expected = plain(with_pandas(wanted / f"{name}.parquet"))
        assert len(expected) > 10
        rows = plain(TOOLS[tool](folder / f"{name}.{form}"))
        pd.testing.assert_frame_equal(rows, expected)


def test_periods_end_as_often_as_the_analysis_says(gleaner, fleet, tmp_path, scope):
    how = ["--region", "12GiB", "--scope", scope, "--minimum-period", "5m"]
    periods = with_pandas(exported(gleaner, fleet, tmp_path / "out", *how) / "periods.parquet")
    found = of_all(analyzed(gleaner, fleet, 12 * GIB), "availability_periods", scope)
    ended = periods["ended_by"].value_counts()
    assert {c: ended.get(c, 0) for c in CAUSES} == {c: found[f"ended_by_{c}_count"] for c in CAUSES}
    assert periods["ended_by"].isna().sum() == found["end_censored_count"]
    assert (~periods["is_start_known"]).sum() == found["start_censored_count"]
    length = (periods["end"] - periods["begin"]).dt.total_seconds() * 1000
    assert length.round().astype("int64").to_list() == periods["length_ms"].to_list()
    assert (periods["length_ms"] >= 300_000).all()


def test_lengths_are_the_analysis_where_no_network_was_seen(gleaner, imported, tmp_path):
    """Hosts without a collector: periods as seen and periods as for leases are equal."""
    how = ["--region", "1GiB", "--minimum-period", "5m"]
    periods = with_polars(exported(gleaner, imported, tmp_path / "out", *how) / "periods.parquet")
    found = of_all(analyzed(gleaner, imported, GIB), "availability_periods", "all")
    seconds = periods["length_ms"] / 1000
    assert len(seconds) == found["periods_count"] > 10
    assert seconds.mean() == pytest.approx(found["mean_s"])
    assert seconds.median() == pytest.approx(found["median_s"])
    assert seconds.max() == found["longest_s"]
    # Values that this archive lacks are absent.
    samples = with_pandas(tmp_path / "out" / "samples.parquet")
    assert samples[["is_idle", "is_in_idle_period", "quota_bytes"]].isna().all().all()
    assert samples["available_bytes"].notna().all()


def test_samples_are_the_analysis(gleaner, fleet, tmp_path, scope):
    folder = exported(gleaner, fleet, tmp_path / "out", "--region", "1GiB")
    samples = duckdb.sql(f"SELECT * FROM '{folder}/samples.parquet'").df()
    found = analyzed(gleaner, fleet, GIB)
    counted = samples if scope == "all" else samples[samples["is_in_idle_period"].eq(True)]
    for notion in ("available", "harvestable"):
        record = of_all(found, "notions", scope, notion)
        sizes = counted[f"{notion}_bytes"].dropna()
        assert len(sizes) == record["samples_count"] > 100
        assert sizes.mean() == pytest.approx(record["mean_bytes"])
    last = samples.groupby("host_id").last()
    for quota in found["quotas"]:
        row = last.loc[quota["host_id"]]
        assert row["time"].timestamp() * 1000 == quota["time_ms"]
        assert row["quota_bytes"] == quota["quota_bytes"]
        assert row["paper_quota_bytes"] == quota["paper_quota_bytes"]
        assert row["harvestable_bytes"] == quota["harvestable_bytes"]
    assert len(found["quotas"]) == 4
    # Nothing is lent unless the host is idle; being idle is known later than the owner's absence.
    assert samples.loc[samples["is_idle"].eq(False), "quota_bytes"].eq(0).all()
    assert samples.loc[samples["is_idle"].eq(True), "is_in_idle_period"].eq(True).all()
    assert samples["is_in_idle_period"].sum() > samples["is_idle"].sum() > 0
    gaps = len(found["gaps"])
    assert samples["follows_gap"].sum() <= gaps + 4
