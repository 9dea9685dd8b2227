"""Tables beside the same rows that pyarrow reads from the folders; selections must not read what they leave out."""

import shutil
from datetime import date, datetime, timedelta, timezone

import gleaner
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from conftest import folder_of
from polars.testing import assert_frame_equal

NOON = datetime(2026, 11, 17, 12, tzinfo=timezone.utc)


def assert_same(ours: pa.Table, theirs: pa.Table) -> None:
    """Equal columns, types and rows; the order of rows does not count."""
    assert ours.schema.remove_metadata().equals(theirs.schema.remove_metadata())
    assert_frame_equal(pl.from_arrow(ours), pl.from_arrow(theirs), check_row_order=False)


def test_the_tables_are_the_folders(dataset):
    tables = {name: count for name, count in dataset.tables().items() if count}
    assert set(tables) == {folder.name for folder in dataset.path.iterdir() if folder.is_dir() and not folder.name.startswith(".")}
    for name, count in tables.items():
        theirs = folder_of(dataset, name).to_table()
        assert theirs.num_rows == count == dataset.table(name).rows_at_most
        assert_same(dataset.table(name).arrow(), theirs.drop_columns("date"))
    assert dataset.hosts() == sorted(set(folder_of(dataset, "samples").to_table()["host_id"].to_pylist()))
    times = folder_of(dataset, "samples").to_table()["time"]
    assert dataset.span() == (pc.min(times).as_py(), pc.max(times).as_py())


def test_hosts_columns_and_time_are_selected(dataset):
    columns = ["mem_free_bytes", "time", "host_id"]
    hosts = dataset.hosts()[1:4]
    until = NOON + timedelta(hours=9)
    ours = dataset.table("samples", hosts=hosts, columns=columns, from_=NOON, until=until).arrow()
    field = pc.field
    wanted = field("host_id").isin(hosts) & (field("time") >= pa.scalar(NOON)) & (field("time") < pa.scalar(until))
    theirs = folder_of(dataset, "samples").to_table(columns=columns, filter=wanted)
    assert theirs.num_rows > 0
    assert_same(ours, theirs)
    assert dataset.table("samples", hosts=[]).arrow().num_rows == 0
    assert dataset.table("samples", columns="time", hosts=hosts[0]).schema.names == ["time"]


def test_hosts_are_known_by_name(dataset):
    names = dataset.table("hosts", columns=["host_id", "host_name"]).arrow().to_pylist()
    named = dataset.table("samples", hosts=names[0]["host_name"], columns=["host_id"]).arrow()
    assert set(named["host_id"].to_pylist()) == {names[0]["host_id"]}


def test_units_are_in_the_schema(dataset):
    schema = dataset.table("samples").schema
    assert schema.field("mem_free_bytes").metadata[b"unit"] == b"bytes"
    assert schema.field("time").type == pa.timestamp("ms", "UTC")


def test_batches_are_of_one_day_and_host(dataset):
    days = dataset.table("samples", columns=["host_id", "time"]).batches()
    seen = []
    for batch in days:
        [host] = set(batch["host_id"].to_pylist())
        [day] = {moment.date() for moment in batch["time"].to_pylist()}
        seen.append((day, host))
    assert seen == sorted(set(seen))
    assert len(seen) > 9


@pytest.fixture(scope="module")
def sound_day(dataset, tmp_path_factory) -> gleaner.Dataset:
    """A copy of the dataset of which only the samples of one day can be read."""
    folder = tmp_path_factory.mktemp("damaged") / "dataset"
    shutil.copytree(dataset.path, folder)
    for file in folder.rglob("*.arrow"):
        if file.parent != folder / "samples" / "date=2026-11-17":
            file.write_bytes(file.read_bytes()[:-100])
    return gleaner.open(folder)


def test_files_that_a_selection_leaves_out_are_not_opened(dataset, sound_day):
    day, after = date(2026, 11, 17), date(2026, 11, 18)
    selected = sound_day.table("samples", from_=day, until=after)
    assert_same(selected.arrow(), dataset.table("samples", from_=day, until=after).arrow())
    lazy = sound_day.table("samples").polars()
    begin, end = datetime(2026, 11, 17, tzinfo=timezone.utc), datetime(2026, 11, 18, tzinfo=timezone.utc)
    for condition in (
        (pl.col("time") >= begin) & (pl.col("time") < end),
        pl.col("time").is_between(begin, end, closed="left"),
        (end > pl.col("time")) & (begin <= pl.col("time")) & (pl.col("mem_free_bytes") > 0),
    ):
        assert lazy.filter(condition).select(pl.len()).collect().item() == selected.arrow().num_rows
    with pytest.raises(gleaner.Error, match=r"\.arrow is torn: \d+ bytes instead of \d+"):
        sound_day.table("samples").arrow()
    with pytest.raises(Exception, match="is torn"):
        lazy.collect()


@pytest.mark.parametrize(
    "query",
    [
        lambda rows, host: rows,
        lambda rows, host: rows.select("time", "mem_free_bytes"),
        lambda rows, host: rows.filter(pl.col("host_id") == host).select("mem_free_bytes"),
        lambda rows, host: rows.filter(pl.col("host_id").is_in([host, "nobody"]) & (pl.col("time") >= NOON)),
        lambda rows, host: rows.filter((pl.col("host_id") == host) | (pl.col("time") > NOON)),
        lambda rows, host: rows.filter(pl.col("host_id") == "nobody"),
        lambda rows, host: rows.filter(pl.col("time") == NOON),
        lambda rows, host: rows.filter(pl.col("time").dt.hour() == 3, pl.col("host_id") != host).head(5),
        lambda rows, host: rows.filter(pl.col("mem_free_bytes") > 1 << 30).head(7),
        lambda rows, host: rows.group_by("host_id").agg(pl.len(), pl.col("mem_free_bytes").mean()).sort("host_id"),
    ],
)
def test_lazy_frames_give_the_rows_of_eager_ones(query, dataset):
    table = dataset.table("samples", columns=["host_id", "sequence", "time", "mem_free_bytes"])
    host = dataset.hosts()[2]
    assert_frame_equal(query(table.polars(), host).collect(), query(pl.from_arrow(table.arrow()).lazy(), host).collect())


def test_a_lazy_frame_stays_within_its_table(dataset):
    hosts = dataset.hosts()
    table = dataset.table("samples", hosts=hosts[:2], from_=NOON)
    found = table.polars().filter(pl.col("host_id").is_in(hosts[1:3])).select("host_id", "time").collect()
    assert set(found["host_id"]) == {hosts[1]}
    assert found["time"].min() >= NOON


def test_other_libraries_read_it_by_arrows_interface(dataset):
    table = dataset.table("samples", columns=["host_id", "time"])
    assert pa.table(table).equals(table.arrow())
    assert pa.schema(table) == table.schema
    assert pl.DataFrame(table).height == table.rows_at_most
    assert len(table.pandas()) == table.rows_at_most
    assert str(table.pandas()["time"].dtype) == "datetime64[ms, UTC]"


def test_a_stream_that_is_left_early_ends(dataset):
    for _ in range(3):
        assert next(iter(dataset.table("samples").batches())).num_rows > 0


def test_what_does_not_exist_is_named(dataset):
    for arguments, text in [
        ({"name": "sample"}, 'there is no table "sample": there are samples, processes'),
        ({"name": "samples", "columns": ["time", "free"]}, "table samples has no column free"),
        ({"name": "samples", "from_": "today"}, 'invalid time "today" for from_'),
        ({"name": "samples", "hosts": ["nobody"]}, 'is called "nobody"'),
    ]:
        with pytest.raises(gleaner.Error, match=text):
            dataset.table(**arguments)
