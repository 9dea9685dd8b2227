"""A collector's streams: the rows and values of its dataset's folder, in every reader."""

import http.client
import io
import json
import shutil
import urllib.error

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from collector import Collector
from test_duckdb import BY_HOST, by_host_in_pandas, same


def ordered(rows: pa.Table) -> pa.Table:
    """Rows in a fixed order, whatever their original order."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def in_folder(served, table: str, columns=None, **filters) -> pa.Table:
    rows = served.dataset.open(table).to_table(columns=columns, **filters)
    return rows if columns else rows.drop_columns("date")


def listed(served) -> list[dict]:
    return json.load(served.collector.open("tables"))


def test_the_list_says_what_the_folder_holds(served):
    tables = {table["name"]: table for table in listed(served)}
    dataset = served.dataset
    assert {name for name, table in tables.items() if table["rows_count"]} == set(dataset.tables)
    for name in dataset.tables:
        table = tables[name]
        assert table["rows_count"] == dataset.rows(name)
        assert table["dates"] == sorted({file["date"] for file in dataset.files(name)})
        published = [
            {"name": f["name"], "type": f["type"], "is_nullable": f["nullable"], "unit": f["unit"]}
            for f in dataset.published[name]
        ]
        found = [{k: v for k, v in c.items() if k != "meaning"} for c in table["columns"]]
        assert found == published


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_pyarrow_gets_the_folders_rows(served, compression):
    for table in served.dataset.tables:
        with served.stream(f"{table}?compression={compression}") as stream:
            schema, found = stream.schema, stream.read_all()
        expected = in_folder(served, table)
        assert schema.equals(expected.schema, check_metadata=False)
        for field in schema:
            assert field.metadata == expected.schema.field(field.name).metadata, field.name
        assert ordered(found).equals(ordered(expected)), table


def test_a_table_without_rows_has_its_schema(served):
    for table in listed(served):
        schema = served.stream(f"{table['name']}?from=2100-01-01").read_all().schema
        assert schema.names == [column["name"] for column in table["columns"]]


def test_pandas_gets_the_folders_rows(served):
    for table in served.dataset.tables:
        found = served.stream(table).read_pandas()
        expected = in_folder(served, table).to_pandas()
        order = list(expected.columns[:4]) + list(expected.columns[4:6])
        frames = [f.sort_values(order, ignore_index=True) for f in (found, expected)]
        pd.testing.assert_frame_equal(*frames)


def test_polars_gets_the_folders_rows(served):
    for table in served.dataset.tables:
        found = pl.read_ipc_stream(io.BytesIO(served.collector.open(f"tables/{table}").read()))
        files = served.root / table / "**" / "*.arrow"
        expected = pl.scan_ipc(files, hive_partitioning=True).drop("date").collect()
        assert found.schema == expected.schema
        assert found.sort(found.columns).equals(expected.sort(found.columns)), table


def test_duckdb_gets_the_folders_rows(served):
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=offline) as sql:
        for table in ("samples", "processes"):
            sql.register(table, served.stream(table))
        same(sql.sql(BY_HOST).df(), by_host_in_pandas(served.dataset))


def test_hosts_times_and_columns_are_chosen(synthetic):
    rows = in_folder(synthetic, "processes")
    hosts = sorted(set(rows["host_id"].to_pylist()))
    times = sorted(set(rows["time"].cast(pa.int64()).to_pylist()))
    first, last = times[len(times) // 3], times[len(times) // 2]
    stamp = lambda ms: pa.scalar(ms, pa.timestamp("ms", tz="UTC"))
    columns = ["time", "rss_bytes", "name"]
    found = synthetic.stream(
        f"processes?host={hosts[0]},{hosts[2]}&from={first}&to={last}&columns={','.join(columns)}"
    ).read_all()
    wanted = (
        pc.field("host_id").isin([hosts[0], hosts[2]])
        & (pc.field("time") >= stamp(first))
        & (pc.field("time") < stamp(last))
    )
    expected = in_folder(synthetic, "processes", columns=columns, filter=wanted)
    assert 0 < expected.num_rows < rows.num_rows
    assert found.column_names == columns
    assert ordered(found).equals(ordered(expected))


def test_a_host_is_chosen_by_its_name(shipped):
    hosts = shipped.stream("hosts").read_all().to_pylist()
    found = shipped.stream(f"samples?host={hosts[0]['host_name']}").read_all()
    assert set(found["host_id"].to_pylist()) == {hosts[0]["host_id"]}
    with pytest.raises(urllib.error.HTTPError) as refused:
        shipped.stream("samples?host=nobody")
    assert "nobody" in json.load(refused.value)["error"]


def test_a_stream_that_breaks_off_is_an_error(synthetic, programs, tmp_path):
    root = tmp_path / "dataset"
    shutil.copytree(synthetic.root, root)
    manifest = json.loads((root / "manifest.json").read_text())
    last = max((f for f in manifest["files"] if f["table"] == "samples"), key=lambda f: f["date"])
    torn = root / last["path"]
    torn.write_bytes(torn.read_bytes()[:-100])
    with Collector(programs, tmp_path / "collector", f'dataset = "{root}"') as collector:
        with pytest.raises((http.client.HTTPException, pa.ArrowInvalid, OSError)) as raised:
            pa.ipc.open_stream(collector.open("tables/samples")).read_all()
        print(repr(raised.value))
        with pytest.raises((http.client.HTTPException, OSError)):
            collector.open("tables/samples").read()
        whole = pa.ipc.open_stream(collector.open(f"tables/samples?to={last['date']}")).read_all()
        assert whole.num_rows > 0
        assert torn.name in collector.log.read_text()
