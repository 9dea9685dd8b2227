"""Findings whose records of single hosts are in Parquet files."""

import gleaner
import polars as pl
import pytest

OPTIONS = {"bootstrap": 0, "region": "64MiB"}


@pytest.fixture(scope="module")
def whole(dataset) -> gleaner.Findings:
    return dataset.analyze(**OPTIONS)


@pytest.fixture(scope="module")
def divided(dataset, tmp_path_factory) -> gleaner.Findings:
    folder = tmp_path_factory.mktemp("findings") / "records"
    return dataset.analyze(records=folder, **OPTIONS)


def rows(findings: gleaner.Findings, measure: str) -> list[dict]:
    """Records of a measure, in an order that does not depend on the findings' form."""
    return sorted(findings.arrow(measure).to_pylist(), key=str)


def test_tables_have_all_records(divided, whole):
    assert divided.measures == whole.measures
    assert divided["idle_periods"] == [] and divided["availability_periods"] == whole["availability_periods"]
    for measure in whole.measures:
        assert rows(divided, measure) == rows(whole, measure), measure
        assert divided.arrow(measure).schema == whole.arrow(measure).schema, measure
        assert divided.polars(measure).height == divided.pandas(measure).shape[0] == len(whole[measure])
    assert repr(divided) == repr(whole)


def test_files_are_for_lazy_readers(divided, whole):
    path = divided.file("idle_periods")
    assert pl.scan_parquet(path).select(pl.len()).collect().item() == len(whole["idle_periods"])
    assert divided.file("availability_periods") is None and whole.file("idle_periods") is None


def test_parts_give_the_same_files(dataset, divided, tmp_path):
    parts = gleaner.analyze_in_parts(dataset, 3, records=tmp_path / "records", **OPTIONS)
    assert parts["records"]["files"] == divided["records"]["files"]
    with pytest.raises(gleaner.Error, match="records already has files"):
        gleaner.analyze_in_parts(dataset, 3, records=tmp_path / "records", **OPTIONS)


def test_a_report_by_sites(dataset, tmp_path):
    sites = tmp_path / "sites.toml"
    names = [host["host_name"] for host in dataset.analyze(measure="hosts")["hosts"]]
    sites.write_text(f"quay = {names[:2]}\n")
    page = dataset.report(tmp_path / "fleet.html", sites=sites, bootstrap=0)
    assert page.exists() and (tmp_path / "fleet-sites/quay.html").exists()
    with pytest.raises(gleaner.Error, match="the site quay has no part"):
        dataset.report(tmp_path / "other.html", sites=sites, fleet=True, bootstrap=0)
