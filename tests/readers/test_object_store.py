"""A dataset that the collector publishes to S3 (moto's server), in readers that use the manifest."""

import json
import shutil
import urllib.request
from dataclasses import dataclass

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pytest
from conftest import Dataset, folder_from
from object_store import running, s3, wait_for

PLACE = "traces/gleaner"


@dataclass(frozen=True)
class Published:
    """The local dataset, and its copy on the object store."""

    here: Dataset
    endpoint: str
    filesystem: pyarrow.fs.S3FileSystem

    def paths(self, table: str) -> list[str]:
        """Files that the published manifest names: others are being added or removed."""
        with self.filesystem.open_input_stream(f"{PLACE}/manifest.json") as stream:
            manifest = json.load(stream)
        return [f"{PLACE}/{f['path']}" for f in manifest["files"] if f["table"] == table]

    def open(self, table: str) -> pyarrow.dataset.Dataset:
        date = pyarrow.dataset.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
        return pyarrow.dataset.dataset(
            self.paths(table),
            format="ipc",
            filesystem=self.filesystem,
            partitioning=date,
            partition_base_dir=f"{PLACE}/{table}",
        )


@pytest.fixture(scope="module")
def published(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    here = folder / "dataset"
    shutil.copytree(folder_from("GLEANER_DATASET"), here)
    with s3(folder) as endpoint:
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/traces", method="PUT")).close()
        filesystem = pyarrow.fs.S3FileSystem(
            access_key="test", secret_key="test", region="us-east-1", endpoint_override=endpoint
        )
        config, log = folder / "collector.toml", folder / "collector.log"
        config.write_text(
            f"""
            data_folder = "{folder}/data"
            dataset = "{here}"
            local_listen = "127.0.0.1:0"
            publish = "s3://{PLACE}"
            [publish_options]
            region = "us-east-1"
            endpoint = "{endpoint}"
            allow_http = true
            """
        )

        def is_there() -> bool:
            try:
                with filesystem.open_input_stream(f"{PLACE}/manifest.json") as stream:
                    return stream.read() == (here / "manifest.json").read_bytes()
            except FileNotFoundError:
                return False

        with running([programs / "gleaner-collector", "run", "--config", config], log):
            wait_for("the dataset to be published", log, is_there)
        manifest = json.loads((here / "manifest.json").read_text())
        yield Published(Dataset(here, manifest), endpoint, filesystem)


def ordered(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def test_pyarrow_finds_the_same_rows(published):
    assert "samples" in published.here.tables
    for table in published.here.tables:
        there, here = published.open(table).to_table(), published.here.open(table).to_table()
        assert here.num_rows == published.here.rows(table) > 0
        assert ordered(there).equals(ordered(here)), table


def test_polars_finds_the_same_rows(published):
    options = {
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_region": "us-east-1",
        "aws_endpoint_url": published.endpoint,
        "aws_allow_http": "true",
    }
    for table in published.here.tables:
        urls = [f"s3://{path}" for path in published.paths(table)]
        there = pl.scan_ipc(urls, storage_options=options, hive_partitioning=True).collect()
        here = pl.from_arrow(published.here.open(table).to_table())
        columns = here.columns
        there = there.select(columns).sort(columns)
        assert there.equals(here.sort(columns)), table


def test_duckdb_finds_the_same_rows(published):
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    sql = "SELECT host_id, count(*), sum(mem_free_bytes) FROM {} GROUP BY host_id ORDER BY host_id"
    with duckdb.connect(config=offline) as connection:
        connection.register("there", published.open("samples"))
        connection.register("here", published.here.open("samples"))
        there, here = (connection.sql(sql.format(name)).fetchall() for name in ("there", "here"))
    assert there == here != []
