"""pandas: one file by read_feather, all files through pyarrow."""

import pandas as pd


def test_a_file_is_a_feather_file(dataset):
    for file in dataset.manifest["files"]:
        frame = pd.read_feather(dataset.root / file["path"])
        assert len(frame) == file["rows"]
        assert list(frame.columns) == [field["name"] for field in dataset.published[file["table"]]]


def test_times_are_utc_and_numbers_are_numbers(dataset):
    for table in dataset.tables:
        frame = dataset.open(table).to_table().to_pandas()
        assert len(frame) == dataset.rows(table)
        assert str(frame["time"].dtype) == "datetime64[ms, UTC]", table
        whole = [f["name"] for f in dataset.published[table] if f["type"] == "Int64" and not f["nullable"]]
        assert {str(frame[name].dtype) for name in whole} == {"int64"}, table


def test_the_manifests_time_range_holds(dataset):
    for table in dataset.tables:
        times = dataset.open(table).to_table(columns=["time"]).to_pandas()["time"]
        first = min(file["first_time_ms"] for file in dataset.files(table))
        last = max(file["last_time_ms"] for file in dataset.files(table))
        assert times.min() == pd.Timestamp(first, unit="ms", tz="UTC")
        assert times.max() == pd.Timestamp(last, unit="ms", tz="UTC")
