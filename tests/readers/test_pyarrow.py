"""pyarrow: the folders as a hive-partitioned dataset."""

import json

import pyarrow as pa
import pyarrow.compute
import pyarrow.ipc
import pytest
from conftest import GOLDEN, VERSIONS, published

ARROW_TYPES = {
    "Utf8": pa.string(),
    "Int64": pa.int64(),
    "Float64": pa.float64(),
    "Boolean": pa.bool_(),
    'Timestamp(ms, "UTC")': pa.timestamp("ms", tz="UTC"),
}


def test_every_row_is_there_once(dataset):
    assert "samples" in dataset.tables
    for table in dataset.tables:
        rows = dataset.open(table).to_table()
        assert rows.num_rows == dataset.rows(table) > 0, table


def test_columns_have_the_published_names_types_and_units(dataset):
    for table in dataset.tables:
        schema = dataset.open(table).schema
        assert schema.names == [field["name"] for field in dataset.published[table]] + ["date"]
        for field in dataset.published[table]:
            found = schema.field(field["name"])
            assert found.type == ARROW_TYPES[field["type"]], found
            assert found.nullable == field["nullable"], found
            unit = (found.metadata or {}).get(b"unit")
            assert (unit and unit.decode()) == field["unit"], found


def test_the_folder_is_the_utc_day_of_the_time(dataset):
    for table in dataset.tables:
        rows = dataset.open(table).to_table(columns=["time", "date"])
        days = rows["time"].cast(pa.timestamp("ms")).cast(pa.date32(), safe=False)
        assert days.equals(rows["date"]), table


def test_the_index_finds_a_host_without_the_rest(dataset):
    for file in dataset.manifest["files"]:
        with pa.memory_map(str(dataset.root / file["path"])) as source:
            reader = pa.ipc.open_file(source)
            sizes = [reader.get_batch(i).num_rows for i in range(reader.num_record_batches)]
            if "hosts" in file:  # format version 1
                hosts = [(host["host_id"], host["rows"]) for host in file["hosts"]]
            else:
                batches, *lines = map(json.loads, reader.metadata[b"gleaner.index"].splitlines())
                assert [rows for _, rows in batches] == sizes
                hosts = [(host_id, rows) for host_id, _, rows, _ in lines]
                firsts = [first_row for _, first_row, _, _ in lines]
                assert firsts == [sum(rows for _, rows in hosts[:i]) for i in range(len(hosts))]
                assert file["hosts_count"] == len(hosts)
            expected = [host_id for host_id, rows in hosts for _ in range(rows)]
            assert reader.read_all()["host_id"].to_pylist() == expected
            assert hosts == sorted(hosts)


@pytest.mark.parametrize(
    ("version", "table"),
    [(version, table) for version in VERSIONS for table in sorted(published(version))],
)
def test_golden_values(version, table):
    golden = json.loads((GOLDEN / f"{version}.json").read_text())[table]
    keys = {"processes": "pid", "nodes": "node", "numa_nodes": "numa_node"}
    order = ["host_id", "time", "sequence", *([keys[table]] if table in keys else [])]
    rows = pa.dataset.dataset(GOLDEN / version / table, format="ipc").to_table()
    rows = rows.sort_by([(name, "ascending") for name in order])
    time = rows.column_names.index("time")
    rows = rows.set_column(time, "time", rows["time"].cast(pa.int64()))
    assert rows.column_names == golden["columns"]
    assert [list(row.values()) for row in rows.to_pylist()] == golden["rows"]
