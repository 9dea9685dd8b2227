"""Tables 3 and 4 of the study by Spark SQL on the published Iceberg tables: all figures equal the analysis's."""

import gleaner
import pytest

REGIONS = [256 << 20, 1 << 30, 4 << 30, 16 << 30]
DIPS = [2 << 30, 4 << 30, 8 << 30]
INTERVAL_MS = 600_000
MINIMUM_MS = 300_000

# A run of samples ends at a recorded gap, at a change of database, or after more than two intervals.
RUNS = f"""
    SELECT host_id, t, available_bytes AS available, physical_bytes AS physical,
      sum(IF(interval_ms IS NULL OR database_id <> before_database OR t - before_ms > {2 * INTERVAL_MS}, 1, 0))
        OVER (PARTITION BY host_id ORDER BY t ROWS UNBOUNDED PRECEDING) AS run
    FROM (SELECT *, lag(database_id) OVER host AS before_database, lag(t) OVER host AS before_ms
          FROM (SELECT *, unix_millis(time) AS t FROM samples)
          WINDOW host AS (PARTITION BY host_id ORDER BY t))
"""

PERIODS = """
    WITH next AS (
      SELECT host_id, run, t, available >= {region} AS enough, coalesce(lead(t) OVER r, t) AS until,
        lead(t) OVER r IS NULL AS ends, lag(t) OVER r IS NULL AS begins,
        sum(IF(available >= {region}, 0, 1)) OVER (PARTITION BY host_id, run ORDER BY t ROWS UNBOUNDED PRECEDING) AS island
      FROM runs WINDOW r AS (PARTITION BY host_id, run ORDER BY t)),
    periods AS (
      SELECT host_id, max(until) - min(t) AS length, bool_or(begins) OR bool_or(ends) AS cut
      FROM next WHERE enough GROUP BY host_id, run, island)
    SELECT count(*) AS periods, count_if(cut) AS cut, sum(length) AS length FROM periods WHERE length >= {minimum}
"""


@pytest.fixture(scope="module")
def samples(spark, dataset, tmp_path_factory):
    """The table of samples as Spark reads it from the published folder."""
    tables = tmp_path_factory.mktemp("published") / "tables"
    printed = gleaner.run("export", dataset, "--to", "iceberg", "-o", tables)
    assert f"{sum(dataset.tables().values())} rows in" in printed
    samples = spark.read.format("iceberg").load((tables / "samples").as_uri())
    samples.createOrReplaceTempView("samples")
    spark.sql(RUNS).cache().createOrReplaceTempView("runs")
    return samples


def test_rows_and_files_are_the_datasets(samples, dataset):
    assert samples.count() == dataset.tables()["samples"]
    host, *_ = dataset.hosts()
    expected = dataset.table("samples", hosts=[host], from_="2026-11-17", until="2026-11-18").arrow().num_rows
    day = samples.where(f"host_id = '{host}' AND time >= '2026-11-17T00:00:00Z' AND time < '2026-11-18T00:00:00Z'")
    assert day.count() == expected > 0


def test_table_3_by_spark_sql_is_the_analysis_s(spark, samples, dataset):
    findings = dataset.analyze(measure="dips", dip=DIPS)
    found = {(d["host_id"], d["threshold_bytes"]): d["intervals_count"] for d in findings["dips"] if d["threshold_share"] is None}
    for dip in DIPS:
        rows = spark.sql(f"SELECT host_id, count_if(available < {dip}) AS intervals FROM runs GROUP BY host_id").collect()
        assert len(rows) == len(dataset.hosts())
        assert {(row["host_id"], dip): row["intervals"] for row in rows}.items() <= found.items()
    assert any(found.values())


def test_table_4_by_spark_sql_is_the_analysis_s(spark, samples, dataset):
    findings = dataset.analyze(measure="availability_periods", region=REGIONS, bootstrap=0)
    records = [r for r in findings["availability_periods"] if (r["size_class"], r["scope"]) == ("all", "all")]
    assert [r["region_bytes"] for r in records] == REGIONS
    for record in records:
        [row] = spark.sql(PERIODS.format(region=record["region_bytes"], minimum=MINIMUM_MS)).collect()
        assert (row["periods"], row["cut"]) == (record["periods_count"], record["censored_count"])
        if record["periods_count"]:
            assert row["length"] / row["periods"] / 1000 == pytest.approx(record["mean_s"], abs=1e-6)
