"""DataFusion: the folders of Arrow files as they are, partitioned by date."""

import pyarrow as pa
from datafusion import SessionContext


def opened(dataset, table: str) -> SessionContext:
    context = SessionContext()
    context.register_arrow(
        table,
        f"{dataset.root / table}/",
        file_extension=".arrow",
        table_partition_cols=[("date", pa.string())],
    )
    return context


def fetched(context: SessionContext, sql: str) -> list[dict]:
    return pa.Table.from_batches(context.sql(sql).collect()).to_pylist()


def test_rows_and_days(dataset):
    for table in dataset.tables:
        sql = f"SELECT date, count(*) AS rows FROM {table} GROUP BY date ORDER BY date"
        found = {day["date"]: day["rows"] for day in fetched(opened(dataset, table), sql)}
        dates = sorted({file["date"] for file in dataset.files(table)})
        rows = [sum(f["rows"] for f in dataset.files(table) if f["date"] == date) for date in dates]
        assert found == dict(zip(dates, rows)), table


def test_same_sums_as_pyarrow(dataset):
    sql = "SELECT host_id, sum(mem_free_bytes) AS bytes, max(time) AS last FROM samples GROUP BY host_id"
    found = {row["host_id"]: (row["bytes"], row["last"]) for row in fetched(opened(dataset, "samples"), sql)}
    by_host = dataset.open("samples").to_table().group_by("host_id")
    rows = by_host.aggregate([("mem_free_bytes", "sum"), ("time", "max")]).to_pylist()
    assert found == {row["host_id"]: (row["mem_free_bytes_sum"], row["time_max"]) for row in rows} != {}
