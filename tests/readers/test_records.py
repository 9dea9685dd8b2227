"""Records of single hosts as Parquet (`gleaner analyze --records`): four libraries read what the JSON document has."""

import json

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet
import pytest
from test_json_schema import published, wrong

KEYS = ["idle_periods", "memory_context", "forecasts"]


@pytest.fixture(scope="module")
def whole(gleaner, synthetic) -> dict:
    """Findings with all records in the document."""
    return json.loads(gleaner("analyze", synthetic.root, "--json"))


@pytest.fixture(scope="module")
def divided(gleaner, synthetic, tmp_path_factory):
    """Folder with the records of single hosts, and the document with the other records."""
    folder = tmp_path_factory.mktemp("findings") / "records"
    return folder, json.loads(gleaner("analyze", synthetic.root, "--json", "--records", folder))


def of_hosts(records: list[dict]) -> list[dict]:
    """Records of single hosts, in the order of the hosts; records of a host keep their order."""
    single = [record for record in records if record.get("host_id") not in (None, "all")]
    return sorted(single, key=lambda record: record["host_id"])


def test_the_document_names_every_file_and_satisfies_the_schema(divided, whole):
    folder, document = divided
    assert not wrong(published("findings"), document)
    files = document["records"]["files"]
    assert document["records"]["folder"] == str(folder)
    assert sorted(file["file"] for file in files) == sorted(path.name for path in folder.iterdir())
    lists = {key: records for key, records in whole.items() if isinstance(records, list)}
    assert [file["measure"] for file in files] == [key for key, records in lists.items() if of_hosts(records)]
    for key, records in lists.items():
        assert document[key] == [record for record in records if record.get("host_id") in (None, "all")], key


def test_every_record_is_in_a_file_with_its_types(divided, whole):
    folder, document = divided
    for file in document["records"]["files"]:
        table = pyarrow.parquet.read_table(folder / file["file"])
        expected = of_hosts(whole[file["measure"]])
        assert table.num_rows == file["rows_count"] == len(expected)
        assert table.column_names == list(expected[0])
        assert {str(field.type) for field in table.schema} <= {"string", "int64", "double", "bool"}
        assert table.to_pylist() == expected, file["measure"]
        codecs = pyarrow.parquet.ParquetFile(folder / file["file"]).metadata.row_group(0).column(0)
        assert codecs.compression == "ZSTD"


@pytest.mark.parametrize("key", KEYS)
def test_polars_pandas_and_duckdb_read_the_files(key, divided, whole):
    folder, _ = divided
    path, expected = folder / f"{key}.parquet", of_hosts(whole[key])
    assert pl.scan_parquet(path).collect().to_dicts() == expected
    in_pandas = pd.read_parquet(path)
    assert in_pandas["host_id"].tolist() == [record["host_id"] for record in expected]
    offline = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
    with duckdb.connect(config=offline) as connection:
        counted = connection.sql(f"SELECT host_id, count(*) FROM '{path}' GROUP BY host_id").fetchall()
    hosts = [record["host_id"] for record in expected]
    assert dict(counted) == {host: hosts.count(host) for host in set(hosts)}
