"""Published Iceberg tables in engines that know nothing of Gleaner, while the dataset changes."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import pytest
from conftest import CHECKOUT, Dataset
from object_store import s3
from pyiceberg.table import StaticTable

DUCKDB = CHECKOUT / "target" / "duckdb"
US = pa.timestamp("us", tz="UTC")
KEY = ["host_id", "database_id", "sequence"]
# Kills of a publication at work that must have happened, and the publications that may be tried for them.
KILLS, TRIES = 8, 60


def ordered(rows: pa.Table) -> pa.Table:
    """Rows in an order of their own, with Iceberg's unit of time and one type of text, and plain fields."""

    def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
        if pa.types.is_timestamp(column.type):
            return column.cast(US)
        is_text = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
        return column.cast(pa.string()) if is_text else column

    names = sorted(rows.column_names)
    table = pa.table({name: plain(rows[name]) for name in names})
    return table.sort_by([(name, "ascending") for name in names]).combine_chunks()


@dataclass(frozen=True)
class Site:
    """A dataset, its published tables, and the programs that change them."""

    root: Path
    tables: Path
    programs: Path

    @property
    def dataset(self) -> Dataset:
        return Dataset(self.root, json.loads((self.root / "manifest.json").read_text()))

    def rows(self, table: str) -> pa.Table:
        """Rows of the files that the manifest lists: a killed collector may leave others."""
        files = [str(self.root / file["path"]) for file in self.dataset.files(table)]
        return pyarrow.dataset.dataset(files, format="ipc").to_table()

    def step(self, *args) -> None:
        subprocess.run([self.programs / "examples" / "steps", self.root, *args], check=True)

    def command(self, *options) -> list:
        export = ["export", self.root, "--to", "iceberg", "-o", self.tables, *options]
        return [self.programs / "gleaner", *export]

    def publish(self, *options) -> None:
        subprocess.run(self.command(*options), check=True, timeout=300)

    def open(self, table: str) -> StaticTable:
        return StaticTable.from_metadata(str(self.tables / table))

    def check(self) -> None:
        """Each table has the dataset's rows; tables without rows are empty."""
        found = {path.parent.parent.name for path in self.tables.glob("*/metadata/version-hint.text")}
        assert found >= set(self.dataset.tables)
        for table in found:
            published = self.open(table).scan().to_arrow()
            if table in self.dataset.tables:
                assert ordered(published).equals(ordered(self.rows(table))), table
                assert published.num_rows == self.dataset.rows(table) > 0
            else:
                assert published.num_rows == 0, table


def queries(*sql: str) -> list:
    """Results of SQL in DuckDB 1.5, for which PyPI has the extension `iceberg`."""
    if not (DUCKDB / "duckdb").is_dir():
        pytest.fail(f"{DUCKDB} is missing: run tests/setup")
    program = Path(__file__).with_name("iceberg_by_duckdb.py")
    done = subprocess.run(
        [sys.executable, program, DUCKDB],
        input="".join(f"{line}\n" for line in sql),
        env=os.environ | {"PYTHONPATH": str(DUCKDB)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def site(programs, synthetic, tmp_path) -> Site:
    shutil.copytree(synthetic.root, tmp_path / "dataset")
    (tmp_path / "dataset" / ".lock").unlink(missing_ok=True)
    return Site(tmp_path / "dataset", tmp_path / "tables", programs)


@pytest.fixture(scope="module")
def published(programs, synthetic, tmp_path_factory) -> Site:
    """Tables that no test changes."""
    site = Site(synthetic.root, tmp_path_factory.mktemp("published") / "tables", programs)
    site.publish()
    return site


def last_day(site: Site) -> str:
    return max(file["date"] for file in site.dataset.files("samples"))


def test_pyiceberg_finds_the_same_rows_and_types(published):
    published.check()
    types = {"Utf8": "string", "Int64": "long", "Float64": "double", "Boolean": "boolean"}
    for table in published.dataset.tables:
        schema = published.open(table).schema()
        for field in published.dataset.published[table]:
            found = schema.find_field(field["name"])
            assert str(found.field_type) == types.get(field["type"], "timestamptz"), found
        assert len(schema.fields) == len(published.dataset.published[table])
        assert schema.find_field("sequence").required
    assert "physical" in published.open("samples").schema().find_field("physical_bytes").doc.lower()


def test_polars_finds_the_same_rows(published):
    for table in published.dataset.tables:
        frame = pl.scan_iceberg(str(published.tables / table)).collect()
        assert frame.schema["time"] == pl.Datetime("us", "UTC")
        assert ordered(frame.to_arrow()).equals(ordered(published.rows(table))), table


def test_polars_selects_by_host_and_time(published):
    rows = published.rows("samples")
    host, day = rows["host_id"][0].as_py(), pl.lit(last_day(published)).str.to_datetime(time_zone="UTC")
    frame = pl.scan_iceberg(str(published.tables / "samples"))
    frame = frame.filter((pl.col("host_id") == host) & (pl.col("time") >= day)).collect()
    expected = pl.from_arrow(rows).filter((pl.col("host_id") == host) & (pl.col("time") >= day))
    assert frame.height == expected.height > 0
    assert frame["mem_free_bytes"].sum() == expected["mem_free_bytes"].sum()


def test_duckdb_finds_the_same_rows_and_sums(published):
    tables = published.dataset.tables
    counts = queries(*(f"SELECT count(*) FROM iceberg_scan('{published.tables / t}')" for t in tables))
    assert counts == [[[published.dataset.rows(table)]] for table in tables]
    sql = f"""
        SELECT host_id, count(*), sum(mem_free_bytes)::BIGINT, epoch_ms(min(time)), epoch_ms(max(time))
        FROM iceberg_scan('{published.tables / "samples"}') GROUP BY host_id ORDER BY host_id
    """
    (found,) = queries(" ".join(sql.split()))
    by = published.rows("samples").group_by("host_id")
    by = by.aggregate([("mem_free_bytes", f) for f in ("count", "sum")] + [("time", f) for f in ("min", "max")])
    ms = {f"time_{f}": by[f"time_{f}"].cast(pa.int64()).to_pylist() for f in ("min", "max")}
    columns = [by["host_id"], by["mem_free_bytes_count"], by["mem_free_bytes_sum"]]
    expected = zip(*(c.to_pylist() for c in columns), ms["time_min"], ms["time_max"])
    assert found == sorted(map(list, expected)) != []


def test_filters_leave_out_files(published):
    day, files = last_day(published), published.dataset.files("samples")
    of_day = [file for file in files if file["date"] == day]
    assert 0 < len(of_day) < len(files)
    scan = published.open("samples").scan(row_filter=f"time >= '{day}T00:00:00+00:00'")
    assert len(list(scan.plan_files())) == len(of_day)
    assert scan.to_arrow().num_rows == sum(file["rows"] for file in of_day)
    beyond = published.open("samples").scan(row_filter="host_id > 'g'")  # ids are hexadecimal
    assert list(beyond.plan_files()) == []
    (plan,) = queries(
        f"EXPLAIN ANALYZE SELECT count(*) FROM iceberg_scan('{published.tables / 'samples'}')"
        f" WHERE time >= TIMESTAMPTZ '{day} 00:00:00+00'"
    )
    assert int(re.search(r"Total Files Read: (\d+)", plan[0][1])[1]) == len(of_day)


def test_rows_of_a_file_are_sorted_by_host_and_time(published):
    for path in (published.tables / "samples").glob("data/*/*.parquet"):
        rows = pyarrow.dataset.dataset(path).to_table(columns=["host_id", "time"])
        assert rows.equals(rows.sort_by([("host_id", "ascending"), ("time", "ascending")]))


def test_tables_follow_a_dataset_that_grows_merges_and_retires(site):
    site.publish()
    site.check()
    opened, before = site.open("samples"), site.rows("samples")
    first_day = min(file["date"] for file in site.dataset.files("samples"))
    versions = [site.tables / "samples" / "metadata" / "v1.metadata.json"]
    for step in (["append", "aa01"], ["append", "bb02"], ["merge"], ["retire"]):
        rows = site.dataset.rows("samples")
        site.step(*step)
        changed = site.dataset.rows("samples") - rows
        assert {"append": changed > 0, "merge": changed == 0, "retire": changed < 0}[step[0]]
        site.publish()
        site.check()
        # A reader that opened the first snapshot reads its files, which are no longer in the dataset.
        assert ordered(opened.scan().to_arrow()).equals(ordered(before)), step
        assert ordered(site.open("samples").scan(snapshot_id=1).to_arrow()).equals(ordered(before))
    counts = queries(
        f"SELECT count(*) FROM iceberg_scan('{site.tables / 'samples'}')",
        f"SELECT count(*) FROM iceberg_scan('{site.tables / 'samples'}', snapshot_from_id = 1)",
        f"SELECT count(*) FROM iceberg_scan('{versions[0]}')",
    )
    assert counts == [[[site.dataset.rows("samples")]], [[before.num_rows]], [[before.num_rows]]]
    frame = pl.scan_iceberg(str(site.tables / "samples"), snapshot_id=1).collect()
    assert frame.height == before.num_rows

    site.publish("--grace", "0s")
    site.check()
    kept = {path.parent.name for path in site.tables.glob("*/data/*/*.parquet")}
    assert f"date={first_day}" not in kept
    parquet = {path.name for path in (site.tables / "samples").glob("data/*/*.parquet")}
    assert len(parquet) == len(site.dataset.files("samples"))
    assert [s.snapshot_id for s in site.open("samples").snapshots()] == [5]


def test_the_list_of_tables_names_versions_that_belong_together(site):
    site.publish()
    site.step("append", "aa01")
    site.publish()
    listed = json.loads((site.tables / "gleaner-tables.json").read_text())["tables"]
    assert set(listed) == set(site.dataset.tables)
    samples, processes = (
        StaticTable.from_metadata(str(site.tables / listed[t])).scan().to_arrow() for t in ("samples", "processes")
    )
    assert samples.num_rows == site.dataset.rows("samples")
    joined = processes.select([*KEY, "pid"]).join(samples.select(KEY), keys=KEY, join_type="left anti")
    assert joined.num_rows == 0


def readable(site: Site, tables: list[str]) -> dict[str, int]:
    """Rows of each table that has been published."""
    hints = [t for t in tables if (site.tables / t / "metadata" / "version-hint.text").is_file()]
    return {table: site.open(table).scan().to_arrow().num_rows for table in hints}


@pytest.fixture(params=["export", "collector"])
def publisher(request, site, tmp_path) -> list:
    """Command that publishes the tables: the export, or a collector, which publishes first and then runs on."""
    if request.param == "export":
        return site.command()
    config = tmp_path / "collector.toml"
    config.write_text(
        f'data_folder = "{tmp_path / "data"}"\ndataset = "{site.root}"\nlocal_listen = "127.0.0.1:0"\n'
        f'disk_reserve = "1MiB"\n[tables]\nfolder = "{site.tables}"\n'
    )
    return [site.programs / "gleaner-collector", "run", "--config", config]


def test_a_killed_publication_leaves_each_table_as_before_or_as_after(site, publisher):
    """Kills the program once it has made a random number of files."""
    chance, kills, longest = random.Random(7), 0, 30
    site.publish()
    for number in range(TRIES):
        if kills == KILLS:
            break
        tables = site.dataset.tables
        before = {table: site.dataset.rows(table) for table in tables}
        site.step("append", f"host{number:02}")
        after = {table: site.dataset.rows(table) for table in tables}
        made, known, list_before = chance.randint(1, longest), count(site.tables), list_of_tables(site)
        with subprocess.Popen(publisher, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
            while program.poll() is None and list_of_tables(site) == list_before:
                if count(site.tables) >= known + made:
                    break
                time.sleep(0)  # looks again at once
            program.kill()
        if list_of_tables(site) != list_before:
            longest = max(1, min(longest - 1, made - 1))
        else:
            assert program.returncode == -9
            kills += 1
        for table, rows in readable(site, tables).items():
            assert rows in (before[table], after[table]), (table, rows)
        site.publish()
        site.check()
    assert kills == KILLS
    names = [path.name for path in site.tables.rglob("*")]
    assert not [name for name in names if name.endswith(".unfinished")]


def list_of_tables(site: Site) -> int:
    """Number of the file that a publication replaces after all tables."""
    return (site.tables / "gleaner-tables.json").stat().st_ino


def count(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def test_tables_that_were_copied_to_s3_are_read_there(site, tmp_path):
    place = "traces/tables"
    site.publish("--location", f"s3://{place}")
    with s3(tmp_path) as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/traces", method="PUT")).close()
        keys = {"access_key": "test", "secret_key": "test", "region": "us-east-1"}
        there = pyarrow.fs.S3FileSystem(**keys, endpoint_override=endpoint)
        pyarrow.fs.copy_files(str(site.tables), place, destination_filesystem=there)
        options = {
            "s3.endpoint": endpoint,
            "s3.access-key-id": "test",
            "s3.secret-access-key": "test",
            "s3.region": "us-east-1",
        }
        url = f"s3://{place}/samples/metadata/v1.metadata.json"
        rows = StaticTable.from_metadata(url, options).scan().to_arrow()
        assert ordered(rows).equals(ordered(site.rows("samples")))
        frame = pl.scan_iceberg(url, storage_options=options).select(pl.len()).collect()
        assert frame.item() == site.dataset.rows("samples")


def test_sums_of_a_host_equal_those_of_the_arrow_files(published):
    rows = published.rows("processes")
    host = rows["host_id"][0].as_py()
    found = published.open("processes").scan(row_filter=f"host_id == '{host}'", selected_fields=("rss_bytes",))
    expected = rows.filter(pc.field("host_id") == host)
    assert found.to_arrow().num_rows == expected.num_rows > 0
    assert pc.sum(found.to_arrow()["rss_bytes"]) == pc.sum(expected["rss_bytes"])
