"""Polars: the folders, scanned lazily."""

import polars as pl

POLARS_TYPES = {
    "Utf8": pl.String,
    "Int64": pl.Int64,
    "Float64": pl.Float64,
    "Boolean": pl.Boolean,
    'Timestamp(ms, "UTC")': pl.Datetime("ms", "UTC"),
}


def scan(dataset, table):
    return pl.scan_ipc(dataset.root / table / "**" / "*.arrow", hive_partitioning=True)


def test_rows_and_types(dataset):
    for table in dataset.tables:
        frame = scan(dataset, table).collect()
        assert frame.height == dataset.rows(table), table
        types = {field["name"]: POLARS_TYPES[field["type"]] for field in dataset.published[table]}
        assert frame.schema == types | {"date": pl.Date}, table


def test_a_day_is_read_by_its_folder(dataset):
    for date in {file["date"] for file in dataset.files("samples")}:
        day = scan(dataset, "samples").filter(pl.col("date") == pl.lit(date).str.to_date())
        expected = sum(f["rows"] for f in dataset.files("samples") if f["date"] == date)
        assert day.select(pl.len()).collect().item() == expected


def test_same_sums_as_pandas(dataset):
    by_host = scan(dataset, "samples").group_by("host_id").agg(pl.col("mem_free_bytes").sum())
    frame = dataset.open("samples").to_table().to_pandas()
    expected = frame.groupby("host_id")["mem_free_bytes"].sum().to_dict()
    assert dict(by_host.collect().iter_rows()) == expected
