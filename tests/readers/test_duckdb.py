"""DuckDB: through pyarrow, and from the Parquet export. Neither needs a download."""

import duckdb
import pandas as pd
import pyarrow.parquet
import pytest
from conftest import published

BY_HOST = """
    SELECT s.host_id,
           count(DISTINCT s.sequence) AS samples_count,
           avg(s.mem_free_bytes) AS mem_free_bytes,
           sum(p.rss_bytes) AS rss_bytes
    FROM samples s LEFT JOIN processes p USING (host_id, database_id, sequence)
    GROUP BY s.host_id ORDER BY s.host_id
"""


@pytest.fixture
def sql():
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=offline) as connection:
        yield connection


def by_host_in_pandas(dataset) -> pd.DataFrame:
    samples, processes = (dataset.open(t).to_table().to_pandas() for t in ("samples", "processes"))
    record = ["host_id", "database_id", "sequence"]
    joined = samples[record + ["mem_free_bytes"]].merge(
        processes[record + ["rss_bytes"]], on=record, how="left"
    )
    groups = joined.groupby("host_id")
    return pd.DataFrame(
        {
            "samples_count": groups["sequence"].nunique(),
            "mem_free_bytes": groups["mem_free_bytes"].mean(),
            "rss_bytes": groups["rss_bytes"].sum(min_count=1),
        }
    ).reset_index()


def same(found: pd.DataFrame, expected: pd.DataFrame) -> None:
    found = found.astype({"rss_bytes": float})
    pd.testing.assert_frame_equal(
        found, expected.astype({"rss_bytes": float}), check_dtype=False, rtol=1e-12
    )


def test_a_query_through_pyarrow_equals_pandas(sql, dataset):
    for table in ("samples", "processes"):
        sql.register(table, dataset.open(table))
    same(sql.sql(BY_HOST).df(), by_host_in_pandas(dataset))


def test_a_query_on_parquet_equals_pandas_on_the_dataset(sql, traced, parquet):
    for table in ("samples", "processes"):
        files = parquet / table / "**" / "*.parquet"
        sql.read_parquet(str(files), hive_partitioning=True).create_view(table)
    same(sql.sql(BY_HOST).df(), by_host_in_pandas(traced))
    types = dict(zip(sql.table("samples").columns, map(str, sql.table("samples").types)))
    assert types["time"] == "TIMESTAMP WITH TIME ZONE"
    assert types["date"] == "DATE"


def test_parquet_holds_the_datasets_rows_types_and_units(traced, parquet):
    for table in traced.tables:
        exported = pyarrow.parquet.read_table(parquet / table)
        original = traced.open(table).to_table()
        names = [field["name"] for field in published("v7")[table]]
        order = [(name, "ascending") for name in names]
        assert exported.select(names).schema.equals(
            original.select(names).schema, check_metadata=False
        )
        assert exported.select(names).sort_by(order).equals(original.select(names).sort_by(order))
        for name in names:
            found = exported.schema.field(name).metadata
            expected = original.schema.field(name).metadata or {}
            assert {k: found[k] for k in expected} == expected, name
