"""Exports as Arrow and CSV, complete and partial, in the readers that people use."""

import subprocess

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pytest


@pytest.fixture(scope="session")
def export(programs, synthetic, tmp_path_factory):
    def run(*options):
        folder = tmp_path_factory.mktemp("export")
        command = [programs / "gleaner", "export", synthetic.root, "-o", folder, *options]
        subprocess.run(command, check=True)
        return folder

    return run


@pytest.fixture(scope="session")
def arrow(export):
    return export("--to", "arrow")


@pytest.fixture(scope="session")
def plain(export):
    return export("--to", "arrow", "--uncompressed")


@pytest.fixture(scope="session")
def csv(export):
    return export("--to", "csv")


def original(synthetic, table) -> pd.DataFrame:
    rows = synthetic.stream(table).read_all().to_pandas()
    return rows.sort_values(list(rows.columns[:6]), ignore_index=True)


def files(folder, table):
    found = sorted(folder.glob(f"{table}/date=*/{table}.*"))
    assert found
    return found


@pytest.mark.parametrize("form", ["arrow", "plain"])
def test_pandas_reads_arrow_as_feather(form, synthetic, request):
    folder = request.getfixturevalue(form)
    for table in synthetic.dataset.tables:
        frame = pd.concat([pd.read_feather(file) for file in files(folder, table)])
        frame = frame.sort_values(list(frame.columns[:6]), ignore_index=True)
        pd.testing.assert_frame_equal(frame, original(synthetic, table))


@pytest.mark.parametrize("form", ["arrow", "plain"])
def test_polars_reads_arrow(form, synthetic, request):
    folder = request.getfixturevalue(form)
    for table in synthetic.dataset.tables:
        frame = pl.scan_ipc(folder / table / "**" / "*.arrow", hive_partitioning=True).collect()
        expected = pl.from_arrow(synthetic.stream(table).read_all())
        found = frame.drop("date")
        assert found.sort(found.columns).equals(expected.sort(found.columns)), table


def test_uncompressed_files_are_mapped_without_a_copy(plain, synthetic):
    for table in synthetic.dataset.tables:
        for file in files(plain, table):
            before = pa.total_allocated_bytes()
            with pa.memory_map(str(file)) as source:
                rows = pa.ipc.open_file(source).read_all()
                assert rows.num_rows > 0
                assert pa.total_allocated_bytes() == before, file


def test_pandas_reads_csv(csv, synthetic):
    for table in synthetic.dataset.tables:
        expected = original(synthetic, table)
        types = {n: str for n in expected if expected[n].dtype in ("object", "str")}
        frame = pd.concat(
            [pd.read_csv(f, parse_dates=["time"], dtype=types) for f in files(csv, table)]
        )
        frame = frame.sort_values(list(frame.columns[:6]), ignore_index=True)
        assert list(frame["time"]) == list(expected["time"])
        for name in expected:
            if name != "time":
                # An empty field is an absent value or an empty text: CSV does not distinguish them.
                found, wanted = (f[name].replace("", None) for f in (frame, expected))
                found, wanted = (v.astype(object).where(v.notna(), None) for v in (found, wanted))
                assert list(found) == list(wanted), (table, name)


def test_polars_and_duckdb_read_csv(csv, synthetic):
    rows = synthetic.stream("samples").read_all()
    frame = pl.read_csv(csv / "samples" / "**" / "*.csv", try_parse_dates=True)
    assert frame.height == rows.num_rows
    expected = pl.from_arrow(rows)["mem_free_bytes"]
    assert frame["mem_free_bytes"].sum() == expected.sum()
    assert frame["time"].dtype.time_zone == "UTC"
    times = [times["time"].dt.epoch("ms").sort() for times in (frame, pl.from_arrow(rows))]
    assert times[0].equals(times[1])
    sql = f"SELECT count(*), sum(mem_free_bytes) FROM read_csv('{csv}/samples/**/*.csv')"
    assert duckdb.sql(sql).fetchall() == [(rows.num_rows, expected.sum())]


def test_every_reader_reads_a_part_as_parquet(export, synthetic):
    hosts = sorted(set(synthetic.stream("samples").read_all()["host_id"].to_pylist()))
    date = sorted({file["date"] for file in synthetic.dataset.files("processes")})[1]
    columns = ["host_id", "time", "name", "rss_bytes"]
    chosen = ["--table", "processes", "--host", hosts[1], "--from", date]
    folder = export("--to", "parquet", *chosen, "--columns", ",".join(columns))
    assert [p.name for p in folder.iterdir() if p.is_dir()] == ["processes"]
    query = f"processes?host={hosts[1]}&from={date}&columns={','.join(columns)}"
    expected = synthetic.stream(query).read_all()
    assert expected.num_rows > 0
    path = folder / "processes"
    found = pyarrow.dataset.dataset(path, format="parquet").to_table()
    assert found.equals(expected)
    assert pd.read_parquet(path)[columns].equals(expected.to_pandas())
    assert pl.read_parquet(path / "**" / "*.parquet", hive_partitioning=False).equals(
        pl.from_arrow(expected)
    )
    total = f"SELECT sum(rss_bytes) FROM read_parquet('{path}/**/*.parquet')"
    assert duckdb.sql(total).fetchall() == [(pc.sum(expected["rss_bytes"]).as_py(),)]
